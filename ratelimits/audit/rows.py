"""Rows that mean nothing, mean something else by now, or of nobody who can call."""

from __future__ import annotations

from collections.abc import Iterator

from ratelimits import rows
from ratelimits.checks.plans import ROWS, check_plans, name_of
from ratelimits.doctor.findings import Finding
from ratelimits.scopes import scopes_of_limits, scopes_of_views
from ratelimits.tenants import examples, is_possible

from .naming import _, found, ngettext


def look() -> Iterator[Finding]:
    alias = rows.write_alias()
    for message in check_plans(databases=[alias]):
        yield Finding(str(message.id), "warning", str(message.msg), str(message.hint or ""))
    yield _bad(alias)
    yield _orphans(alias)
    yield _keys(alias)
    yield _scopes(alias)


def _bad(alias: str) -> Finding:
    """Written past the form, so that requests are counted without them."""
    bad = []
    for name, fault_of in ROWS.items():
        for row in rows.model(name).objects.using(alias).order_by("pk").iterator():
            fault = fault_of(row)
            if fault:
                bad.append(f"{name} {row.pk} “{name_of(row)}”: {fault}")
    return found(
        "rows.bad",
        bad,
        _("every row means something"),
        ngettext("%d row means nothing and is left out", "%d rows mean nothing", len(bad)),
        _("Correct them in the admin, or delete them."),
    )


def _orphans(alias: str) -> Finding:
    """A tenant's limits that took the place of one that its plan does not have any more."""
    of_plans: dict[int | None, set[str]] = {}
    for plan, name in rows.model("PlanLimit").objects.using(alias).values_list("plan", "name"):
        of_plans.setdefault(plan, set()).add(name)
    default = rows.model("Plan").objects.using(alias).filter(is_default=True).first()
    default_pk = default.pk if default else None
    own = rows.model("TenantLimit").objects.using(alias).exclude(replaces="")
    orphans = [
        f"{key}/{name} ({replaces})"
        for key, plan, name, replaces in own.order_by("tenant__key", "name").values_list(
            "tenant__key", "tenant__plan", "name", "replaces"
        )
        if name not in of_plans.get(plan or default_pk, ())
    ]
    return found(
        "limits.orphans",
        orphans,
        _("every limit of a tenant is its own, or replaces one of its plan"),
        ngettext(
            "%d limit of a tenant replaced one that its plan does not have any more",
            "%d limits of tenants replaced some that their plans do not have any more",
            len(orphans),
        ),
        _("Delete those that were only meant to be another number for the plan's."),
    )


def _keys(alias: str) -> Finding:
    keys = rows.model("Tenant").objects.using(alias).order_by("key").values_list("key", flat=True)
    never = [key for key in keys.iterator() if not is_possible(key)]
    shown = ", ".join(examples())
    advice = _("No request is counted as one of them. Keys look like this: %s.") % shown
    return found(
        "tenants.keys",
        never,
        _("every tenant's key is one that a resolver can make"),
        ngettext(
            "%d tenant has a key that no resolver makes",
            "%d tenants have keys that no resolver makes",
            len(never),
        ),
        advice,
    )


def _scopes(alias: str) -> Finding:
    costs = rows.model("ScopeCost").objects.using(alias).order_by("scope")
    known = scopes_of_limits() | scopes_of_views()
    unused = [row.scope for row in costs if row.scope not in known]
    return found(
        "scopes.unused",
        unused,
        _("every scope that has a cost is in use"),
        ngettext(
            "%d scope has a cost, but no limit and no view has that scope",
            "%d scopes have a cost, but no limit and no view has them",
            len(unused),
        ),
        _("Scopes that are only named inside of views can't be seen. Otherwise delete them."),
    )
