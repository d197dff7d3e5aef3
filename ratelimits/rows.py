"""From the rows of the models to limits. Only this, and who edits, knows the ORM."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from django.apps import apps
from django.db import router

from .conf import conf
from .exceptions import PlanUnknown
from .limits import Limit
from .logs import once
from .modes import Switch
from .rates import Rate
from .texts import gettext as _
from .validation import limit_errors


@dataclass(frozen=True)
class Plans:
    """All plans, the service's limits, the costs of scopes and the mode, as of one moment."""

    limits: Mapping[str, tuple[Limit, ...]]
    default: str | None
    anonymous: str | None
    service: tuple[Limit, ...]
    costs: Mapping[str, int] = field(default_factory=dict)
    switch: Switch | None = None

    @cached_property
    def by_address(self) -> bool:
        """Whether the service limits addresses."""
        return any(limit.per == "address" for limit in self.service)


@dataclass(frozen=True)
class Own:
    """What a tenant's rows say: its plan's slug, and its own limits with their ends."""

    plan: str | None = None
    limits: tuple[tuple[Limit, datetime | None], ...] = ()


def model(name: str) -> Any:
    return apps.get_model("ratelimits", name)


def write_alias() -> str:
    """The database that edits go to. Reading a replica could bring back what was edited."""
    return router.db_for_write(model("Plan"))


def load_plans() -> Plans:
    """Read all plans. May raise any of Django's database errors."""
    alias = write_alias()
    plans = model("Plan").objects.using(alias).order_by("pk").prefetch_related("limits")
    limits, default, anonymous = {}, None, None
    for plan in plans:
        limits[plan.slug] = tuple(_limits(plan.limits.all()))
        default = plan.slug if plan.is_default else default
        anonymous = plan.slug if plan.is_anonymous else anonymous
    service = model("ServiceLimit").objects.using(alias).order_by("pk")
    costs = model("ScopeCost").objects.using(alias).order_by("pk")
    service_limits = tuple(_limits(service))
    return Plans(limits, default, anonymous, service_limits, _costs(costs), load_switch())


def load_switch() -> Switch | None:
    """The mode that an operator switched to last, if that has not ended."""
    row = model("ModeSwitch").objects.using(write_alias()).order_by("-pk").first()
    return None if row is None else row.switch


def load_tenant(key: str) -> Own:
    """Read a tenant, whose plan the setting PLAN may know better."""
    tenant = _tenant(key)
    plan = _billed_plan(key)
    if tenant is None:
        return Own(plan)
    return Own(plan or (tenant.plan and tenant.plan.slug), tuple(own_limits(tenant)))


def own_limits(tenant: Any) -> Iterator[tuple[Limit, datetime | None]]:
    """A tenant's own limits, each with when it ends."""
    for row in sorted(tenant.limits.all(), key=lambda row: row.pk):
        # What it is afterwards comes first, so that the other counts until then.
        for each in (row.afterwards(), row):
            if each is not None and (limit := limit_of(each)) is not None:
                yield limit, each.expires_at


def _tenant(key: str) -> Any:
    """The row of a tenant. One that no database could hold has none."""
    if not is_storable(key):
        return None
    rows = model("Tenant").objects.using(write_alias())
    return rows.select_related("plan").prefetch_related("limits").filter(key=key).first()


def is_storable(key: str) -> bool:
    """Whether databases can be asked for a text: callers may be called anything."""
    try:
        return b"\0" not in key.encode()
    except UnicodeEncodeError:
        return False


def _billed_plan(key: str) -> str | None:
    """The plan that PLAN names. Raises PlanUnknown, whatever goes wrong there."""
    try:
        ask = conf.imported("PLAN")
        return (ask(key) or None) if ask else None
    except Exception as error:
        raise PlanUnknown(f"PLAN: {error!r}") from error


def _limits(rows: Iterable[Any]) -> Iterable[Limit]:
    return (limit for row in rows if (limit := limit_of(row)) is not None)


def _costs(rows: Iterable[Any]) -> dict[str, int]:
    return {row.scope: row.cost for row in rows if not is_left_out(row, fault_of(row))}


def is_left_out(row: Any, wrong: str) -> bool:
    """Whether a row was written past the form and means nothing, which is logged once."""
    if wrong:
        once.error(f"{row._meta.label} {row.pk} {row.name!r} is left out: {wrong}")
    return bool(wrong)


def limit_of(row: Any) -> Limit | None:
    """The limit that a row of any of the models means, None if it means nothing."""
    if is_left_out(row, fault_of(row)):
        return None
    return Limit(
        name=row.name,
        rate=row.rate,
        burst=row.burst,
        scope=row.scope,
        algorithm=getattr(row, "algorithm", "token_bucket"),
        mode=row.mode,
        on_store_failure=getattr(row, "on_store_failure", ""),
        per=getattr(row, "per", "tenant"),
    )


def fault_of(row: Any) -> str:
    """Why a row means no limit or cost, in one line; empty if it does mean one."""
    if not hasattr(row, "rate"):
        return _fault_of_cost(row)
    if not isinstance(row.rate, Rate):
        return _("%r is not a rate.") % (row.rate,)
    algorithm = getattr(row, "algorithm", "token_bucket")
    if algorithm not in ("token_bucket", "fixed_window", "sliding_log", "sliding_counter"):
        return _("%r is not an algorithm.") % algorithm
    errors = limit_errors(row.rate, row.burst, algorithm)
    if row.burst is not None and row.burst < 1:
        return _("The burst is below 1.")
    return " ".join(str(error) for error in errors.values())


def _fault_of_cost(row: Any) -> str:
    if not isinstance(row.cost, int) or row.cost < 0:
        return _("%r is not a cost.") % (row.cost,)
    return "" if row.scope else _("It names no scope.")
