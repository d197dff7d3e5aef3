"""Checks of what is in the database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from django.core.checks import CheckMessage, Warning
from django.db import Error, transaction

from ratelimits import rows
from ratelimits.client import rows as upstream_rows

from .base import is_on, is_plain_check, is_test_run

# The models whose rows may mean nothing, and what tells so of each.
ROWS: Mapping[str, Callable[[Any], str]] = {
    "PlanLimit": rows.fault_of,
    "TenantLimit": rows.fault_of,
    "ServiceLimit": rows.fault_of,
    "ScopeCost": rows.fault_of,
    "Upstream": upstream_rows.fault_of,
    "UpstreamLimit": upstream_rows.fault_of,
}


def check_plans(*, databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    alias = rows.write_alias()
    # The database of a test run is empty, as it should be.
    if not is_on() or is_test_run() or alias not in (databases or ()):
        return []
    plans = _defaults(alias)
    if plans is None or any(plans):
        return []
    if not plans:
        return [
            Warning(
                "There is no plan in the database, so that no tenant is limited.",
                hint="Create three to edit: manage.py ratelimits_starter",
                id="ratelimits.W030",
            )
        ]
    return [
        Warning(
            "No plan is the default one, so that tenants without a plan of their own have no "
            "limit, nor have anonymous callers unless a plan is for them.",
            hint='Tick a plan\'s box "default" in the admin, or create a free plan that is the '
            "default: manage.py ratelimits_starter --add-missing",
            id="ratelimits.W031",
        )
    ]


def check_unasked(**kwargs: Any) -> list[CheckMessage]:
    """Both of the others, in the command that checks: Django leaves databases out there."""
    if not is_on() or not is_plain_check():
        return []
    databases = [rows.write_alias()]
    return [*check_plans(databases=databases), *check_rows(databases=databases)]


def check_rows(*, databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Rows that were written past the form and mean nothing: requests are counted without them."""
    alias = rows.write_alias()
    if not is_on() or alias not in (databases or ()):
        return []
    try:
        with transaction.atomic(using=alias):
            return [message for name in ROWS for message in _bad_rows(name, alias)]
    except Error:
        return []


def name_of(row: Any) -> str:
    """What an operator knows a row by."""
    return str(getattr(row, "slug", None) or row.name)


def _bad_rows(name: str, alias: str) -> Iterator[CheckMessage]:
    # Of an upstream only what means nothing, since calls to it are made anyway.
    left = "partly left" if name == "Upstream" else "left"
    for row in rows.model(name).objects.using(alias).order_by("pk").iterator():
        fault = ROWS[name](row)
        if fault:
            yield Warning(
                f'The {row._meta.verbose_name} "{name_of(row)}" is {left} out: {fault}',
                hint="Correct it in the admin, or delete it.",
                obj=row,
                id="ratelimits.W032",
            )


def _defaults(alias: str) -> list[bool] | None:
    """Whether each plan is the default; None if the database can't tell, or isn't migrated."""
    try:
        with transaction.atomic(using=alias):
            found = rows.model("Plan").objects.using(alias).values_list("is_default", flat=True)
            return list(found)
    except Error:
        return None
