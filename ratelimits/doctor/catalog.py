"""What a process would know of plans and tenants if it read them now."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone

from django.core.checks import CheckMessage
from django.db import connections
from django.db.migrations.executor import MigrationExecutor
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ratelimits import rows
from ratelimits.checks.plans import ROWS, check_plans
from ratelimits.modes import mode_with

from .findings import Finding, Level
from .waiting import within_patience

# Rows are looked at for so many seconds, and so many bad ones are named.
ROWS_SECONDS = 2.0
EXAMPLES = 5


@dataclass(frozen=True)
class Read:
    """What the database says; the plans took so many milliseconds."""

    plans: rows.Plans
    ms: float
    tenants: int
    bad: tuple[str, ...]
    looked_at: int
    messages: tuple[CheckMessage, ...]


def look() -> Iterator[Finding]:
    alias = rows.write_alias()
    value = {"alias": alias, "readable": False, "unapplied": []}
    try:
        missing = within_patience(alias, lambda: unapplied(alias))
        if missing:
            text = _('not applied to the database "%(alias)s": %(names)s')
            text %= {"alias": alias, "names": ", ".join(missing)}
            advice = _("Run: manage.py migrate ratelimits")
            yield Finding("catalog", "problem", text, advice, {**value, "unapplied": missing})
            return
        read = within_patience(alias, lambda: _read(alias))
    except Exception as error:
        # Whatever a database, its driver or a router does.
        text = _('The database "%(alias)s" can\'t be read: %(error)s')
        text %= {"alias": alias, "error": str(error).strip() or repr(error)}
        advice = _(
            "Processes go on with the limits they know; for those that know none, STORE_FAILURE "
            "decides."
        )
        yield Finding("catalog", "problem", text, advice, value)
        return
    yield from _findings(alias, read)


def unapplied(alias: str) -> list[str]:
    """The names of our migrations that the database lacks."""
    executor = MigrationExecutor(connections[alias])
    targets = executor.loader.graph.leaf_nodes("ratelimits")
    plan = executor.migration_plan(targets)
    return [step.name for step, _backwards in plan if step.app_label == "ratelimits"]


def _read(alias: str) -> Read:
    started = time.perf_counter()
    plans = rows.load_plans()
    ms = 1000 * (time.perf_counter() - started)
    tenants = rows.model("Tenant").objects.using(alias).count()
    bad, looked_at = _bad_rows(alias)
    messages = tuple(check_plans(databases=[alias]))
    return Read(plans, ms, tenants, tuple(bad), looked_at, messages)


def _bad_rows(alias: str) -> tuple[list[str], int]:
    """Rows that mean no limit, and how many were looked at."""
    bad, looked_at, until = [], 0, time.monotonic() + ROWS_SECONDS
    for name in ROWS:
        for row in rows.model(name).objects.using(alias).order_by("pk").iterator():
            fault = rows.fault_of(row)
            if fault:
                bad.append(f'{name} {row.pk} "{row.name}": {fault}')
            looked_at += 1
            if time.monotonic() > until:
                return bad, looked_at
    return bad, looked_at


def _findings(alias: str, read: Read) -> Iterator[Finding]:
    value = {"alias": alias, "readable": True, "unapplied": [], "ms": round(read.ms, 3)}
    text = _('plans read from the database "%(alias)s" in %(ms)s ms')
    text %= {"alias": alias, "ms": f"{read.ms:.1f}"}
    yield Finding("catalog", "ok", text, value=value)
    yield _plans(read)
    yield _mode(read)
    text = ngettext("%(count)s tenant", "%(count)s tenants", read.tenants)
    text %= {"count": f"{read.tenants:,}"}
    yield Finding("catalog.tenants", "ok", text, value={"tenants": read.tenants})
    yield _rows(read)
    for message in read.messages:
        yield Finding(str(message.id), "warning", str(message.msg), str(message.hint or ""))


def _plans(read: Read) -> Finding:
    plans = read.plans
    limits = sum(map(len, plans.limits.values()))
    value = {
        "plans": len(plans.limits),
        "limits": limits,
        "service_limits": len(plans.service),
        "default": plans.default,
        "anonymous": plans.anonymous,
    }
    text = _(
        "plans: %(plans)s, with limits: %(limits)s, and service limits: %(service_limits)s; "
        "default %(default)s, for anonymous callers %(anonymous)s"
    ) % {
        **value,
        "default": plans.default or _("none"),
        "anonymous": plans.anonymous or plans.default or _("none"),
    }
    return Finding("catalog.plans", "ok", text, value=value)


def _mode(read: Read) -> Finding:
    """What an operator switched to for a while, above the setting."""
    switch, mode = read.plans.switch, mode_with(read.plans.switch)
    if switch is None:
        text = _('"%s", as in the settings') % mode
        return Finding("catalog.mode", "ok", text, value={"mode": mode, "until": None})
    until = datetime.fromtimestamp(switch.until, timezone.utc).isoformat()
    level: Level = "ok" if mode == "enforce" else "warning"
    advice = "" if level == "ok" else _("To end it before: manage.py ratelimits_mode settings")
    value = {"mode": mode, "until": until}
    text = _('switched to "%(mode)s" until %(until)s') % value
    return Finding("catalog.mode", level, text, advice, value)


def _rows(read: Read) -> Finding:
    value = {"bad_rows": len(read.bad), "looked_at": read.looked_at}
    told = {"looked": f"{read.looked_at:,}", "bad": f"{len(read.bad):,}"}
    if not read.bad:
        text = _("rows looked at: %(looked)s, all mean something") % told
        return Finding("catalog.rows", "ok", text, value=value)
    text = _("rows looked at: %(looked)s, left out: %(bad)s: %(names)s")
    text %= {**told, "names": "; ".join(read.bad[:EXAMPLES])}
    advice = _("Correct them in the admin, or delete them.")
    return Finding("catalog.rows", "warning", text, advice, value)
