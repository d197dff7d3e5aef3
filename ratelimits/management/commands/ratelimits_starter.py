"""A first set of plans, to be edited in the admin."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error, router, transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from ratelimits.management.databases import fault_of
from ratelimits.models import Plan, PlanLimit


class Starter(NamedTuple):
    """A plan to begin with; each limit is a name, a rate and a burst."""

    slug: str
    description: str
    limits: tuple[tuple[str, str, int | None], ...]


# What a burst allows at once stays well below a minute's worth, and the day's worth below what
# the minutes add up to: each limit has a purpose of its own.
STARTERS = (
    Starter(
        "free",
        gettext_noop("To try the API."),
        (("requests", "60/m", 20), ("daily", "2000/d", None)),
    ),
    Starter(
        "pro",
        gettext_noop("For one product in production."),
        (("requests", "600/m", 100), ("daily", "100000/d", None)),
    ),
    Starter(
        "enterprise",
        gettext_noop("By contract."),
        (("requests", "6000/m", 1000), ("daily", "2000000/d", None)),
    ),
)


class Command(BaseCommand):
    help = "Create the plans free, pro and enterprise, with limits to edit."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--add-missing",
            action="store_true",
            help="Create those of the three that are missing, although there are plans already.",
        )

    def handle(self, *, add_missing: bool, **options: Any) -> None:
        try:
            self._create_all(router.db_for_write(Plan), add_missing)
        except Error as error:
            raise CommandError(fault_of(error)) from error

    def _create_all(self, alias: str, add_missing: bool) -> None:
        with transaction.atomic(using=alias):
            present = set(Plan.objects.using(alias).values_list("slug", flat=True))
            if present and not add_missing:
                self._leave(present)
                return
            for starter in STARTERS:
                if starter.slug in present:
                    self.stdout.write(_("%s: was there already") % starter.slug)
                else:
                    self._create(starter, alias)
        self._say_default(alias)

    def _leave(self, present: set[str]) -> None:
        told = _("Nothing changed: there are plans already (%s).")
        self.stdout.write(told % ", ".join(sorted(present)))
        self.stdout.write(
            _(
                "Use --add-missing to create those of free, pro and enterprise that are not among "
                "them."
            )
        )

    def _create(self, starter: Starter, alias: str) -> None:
        plans = Plan.objects.using(alias)
        is_free = starter.slug == "free"
        plan = plans.create(
            slug=starter.slug,
            name=starter.slug.capitalize(),
            description=_(starter.description),
            is_default=is_free and not plans.filter(is_default=True).exists(),
            is_anonymous=is_free and not plans.filter(is_anonymous=True).exists(),
        )
        self.stdout.write(self.style.SUCCESS(_created(plan)))
        for name, rate, burst in starter.limits:
            limit = PlanLimit.objects.using(alias).create(
                plan=plan, name=name, rate=rate, burst=burst
            )
            self.stdout.write(f"  {limit}")

    def _say_default(self, alias: str) -> None:
        if not Plan.objects.using(alias).filter(is_default=True).exists():
            told = _("No plan is the default: tenants without one are not limited.")
            self.stdout.write(self.style.WARNING(told))


def _created(plan: Plan) -> str:
    texts = {
        (True, True): _("%s: created (default and anonymous)"),
        (True, False): _("%s: created (default)"),
        (False, True): _("%s: created (anonymous)"),
        (False, False): _("%s: created"),
    }
    return texts[plan.is_default, plan.is_anonymous] % plan.slug
