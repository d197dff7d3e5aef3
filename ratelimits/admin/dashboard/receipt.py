"""Where a receipt is pasted."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from ratelimits.admin.pages import PagesAdmin
from ratelimits.admin.receipts import ReceiptForm


def look(request: HttpRequest, admin: PagesAdmin[Any]) -> ReceiptForm:
    """See Panel."""
    return ReceiptForm(rows=2)
