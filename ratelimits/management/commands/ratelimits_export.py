"""Prints plans as code: a file for review, for ratelimits_apply and for other databases."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from ratelimits import rows
from ratelimits.plan_files.writing import text_of


class Command(BaseCommand):
    help = (
        "Print the plans, their limits, service limits and costs of scopes as TOML, which "
        "ratelimits_apply takes back. Tenants are not part of it."
    )

    def handle(self, **options: Any) -> None:
        self.stdout.write(text_of(rows.write_alias()), ending="")
