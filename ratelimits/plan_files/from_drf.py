"""The plans that say what a project's settings say to the throttles of DRF."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from typing import Any

from django.utils.translation import gettext

from ratelimits.rates import Rate
from ratelimits.validation import MAX_LOG

from .kinds import LIMITS, SECTIONS, Item, Path
from .reading import BadFile, Wanted, invalid

PLANS = SECTIONS["plans"]
USERS, ANONYMOUS = "is_default", "is_anonymous"
# What plans are called that are not there yet.
NEW = {
    USERS: {"slug": "default", "name": "Default"},
    ANONYMOUS: {"slug": "anonymous", "name": "Anonymous"},
}


def wanted_of(present: Mapping[Path, Item]) -> Wanted:
    """The plans that DEFAULT_THROTTLE_RATES asks for. Raises BadFile for what it can't mean.

    `anon` is a limit of the anonymous plan and `user` one of the default plan, as are the scopes
    of other such throttles among DEFAULT_THROTTLE_CLASSES. Other scopes are limits of requests of
    that scope, on both plans.
    """
    wanted = Wanted({PLANS.section})
    rates = dict(_rates(wanted))
    places = {scope: _marks_of(scope, rates) for scope in rates}
    for mark in (USERS, ANONYMOUS):
        scopes = [scope for scope, marks in places.items() if mark in marks]
        if scopes:
            _add(wanted, present, mark, {scope: rates[scope] for scope in scopes})
    if wanted.faults:
        raise BadFile(wanted.faults)
    return wanted


def scopes_of_throttles() -> dict[str, str]:
    """The scopes that are no view's but a throttle's, and the plan that says as much."""
    from rest_framework import throttling
    from rest_framework.settings import api_settings

    found = {"anon": ANONYMOUS, "user": USERS}
    kinds: Any = api_settings.DEFAULT_THROTTLE_CLASSES or ()
    for kind in kinds:
        scope = getattr(kind, "scope", None)
        if scope and issubclass(kind, throttling.AnonRateThrottle):
            found[scope] = ANONYMOUS
        elif scope and issubclass(kind, throttling.UserRateThrottle):
            found[scope] = USERS
    return found


def _rates(wanted: Wanted) -> Iterator[tuple[str, Rate]]:
    from rest_framework.settings import api_settings

    from ratelimits.throttling.rates import read_rate

    for scope, text in (api_settings.DEFAULT_THROTTLE_RATES or {}).items():
        try:
            quota, window = read_rate(text)
            rate = None if quota is None or window is None else Rate(quota, window)
        except Exception as error:
            # Whatever the reader of DRF meets in what is no rate.
            told = gettext("DEFAULT_THROTTLE_RATES[%(scope)r]: %(rate)r is not a rate (%(error)s).")
            names = {"scope": scope, "rate": text, "error": error or type(error).__name__}
            wanted.faults.append(told % names)
        else:
            if rate is not None:
                yield scope, rate


def _marks_of(scope: str, rates: Mapping[str, Rate]) -> tuple[str, ...]:
    own = scopes_of_throttles()
    if scope in own:
        return (own[scope],)
    # Without an anonymous plan the default one is everybody's.
    has_anonymous = any(own.get(each) == ANONYMOUS for each in rates)
    return (USERS, ANONYMOUS) if has_anonymous else (USERS,)


def _add(wanted: Wanted, present: Mapping[Path, Item], mark: str, rates: dict[str, Rate]) -> None:
    plan = _plan(present, mark)
    _want(wanted, plan)
    for scope, rate in rates.items():
        path = (*plan.path, LIMITS.section, scope)
        # What an operator has made of the rest of it stays.
        row = copy(present[path].row) if path in present else _limit(scope, rate)
        row.rate = rate
        _want(wanted, Item(LIMITS, path, row))


def _limit(scope: str, rate: Rate) -> Any:
    # As DRF counts; a log of so many requests would be too long.
    algorithm = "sliding_log" if (rate.quota or 0) <= MAX_LOG else "sliding_counter"
    own = "" if scope in scopes_of_throttles() else scope
    return LIMITS.make(scope, {"scope": own, "algorithm": algorithm})


def _plan(present: Mapping[Path, Item], mark: str) -> Item:
    """The plan that has the mark, or is to get it."""
    plans = [item for item in present.values() if item.kind is PLANS]
    for item in plans:
        if item.value(mark):
            return Item(PLANS, item.path, copy(item.row))
    new = dict(NEW[mark])
    path = (PLANS.section, new.pop("slug"))
    row = copy(present[path].row) if path in present else PLANS.make(path[1], new)
    setattr(row, mark, True)
    return Item(PLANS, path, row)


def _want(wanted: Wanted, item: Item) -> None:
    # A plan may be both.
    if item.path not in wanted.items:
        wanted.faults += invalid(item.kind, item.path, item.row)
        wanted.items[item.path] = item


def unnamed(wanted: Wanted, scopes: set[Any]) -> list[str]:
    """Scopes of the limits that no view names."""
    limits = [item for item in wanted.items.values() if item.kind is LIMITS]
    found = {item.value("scope") for item in limits} - {""}
    return sorted(found - scopes)
