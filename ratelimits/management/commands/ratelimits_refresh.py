"""Makes every process read the limits again, after edits that Django did not see."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import router
from django.utils.translation import gettext

from ratelimits.models import Plan, Tenant, Upstream
from ratelimits.signals import plans_edited, tenants_edited, upstreams_edited


class Command(BaseCommand):
    help = (
        "Make every process read plans, tenants and upstreams again, such as after an edit in SQL."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--tenant",
            action="append",
            metavar="KEY",
            help="Only this tenant, at no cost to the others. Can be repeated.",
        )

    def handle(self, *, tenant: list[str] | None, **options: Any) -> None:
        alias = router.db_for_write(Plan)
        if tenant is None:
            plans_edited.send(sender=Plan, using=alias)
            upstreams_edited.send(sender=Upstream, using=alias, keys=None)
        tenants_edited.send(sender=Tenant, using=alias, keys=tenant)
        what = ", ".join(tenant) if tenant else gettext("all plans, tenants and upstreams")
        told = gettext("The next requests read again: %s.") % what
        self.stdout.write(self.style.SUCCESS(told))
