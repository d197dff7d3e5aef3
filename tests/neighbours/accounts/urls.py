"""As docs/neighbours.md shows them."""

from __future__ import annotations

from tests.neighbours.page import sample

urlpatterns = sample("allauth.account")["urlpatterns"]
