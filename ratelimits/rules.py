"""Limits at a view: the tenant's plan, or one that is written in code."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.http.multipartparser import MultiPartParserError

from .addresses import address_of
from .algorithms import ALGORITHMS, Operation
from .conf import conf
from .effects import Effect, Flow
from .flow import NOTHING, Asked, check_cost, count, of_plan
from .keys import digest
from .limits import Decision, Limit
from .rates import Rate
from .requests import is_preflight
from .stores.base import Group, Slot
from .tenants import by_user, is_exempt, tenant_of
from .validation import limit_errors
from .who import acaller_of, caller_of

# Written for a rate: the limits of the tenant's plan.
PLAN = object()
KINDS = ("tenant", "ip", "user")
MODES = ("enforce", "shadow", "off")


@dataclass(frozen=True)
class Rule:
    """One `@ratelimit`. What is callable is asked at each request."""

    rate: Any
    by: Any
    scope: str
    cost: Any
    methods: frozenset[str] | None
    name: str
    ident: str
    burst: int | None
    algorithm: str
    mode: str

    def applies(self, request: Any) -> bool:
        """Whether it is for this method. HEAD is GET without the body."""
        method = "GET" if request.method == "HEAD" else request.method
        return self.methods is None or method in self.methods

    def limit(self, rate: Rate) -> Limit:
        return _limit(self, rate)

    def asks_database(self) -> bool:
        """Whether finding out may do more than look at the request."""
        return any(map(callable, (self.rate, self.by, self.cost))) or self.by in ("tenant", "user")


@lru_cache(maxsize=1024)
def _limit(rule: Rule, rate: Rate) -> Limit:
    """Raises ValueError if the rule can't have this rate."""
    errors = {} if rate.is_unlimited else limit_errors(rate, rule.burst, rule.algorithm)
    if errors:
        raise ValueError(f'The limit "{rule.name}": ' + " ".join(map(str, errors.values())))
    return Limit(
        rule.name,
        rate,
        rule.burst,
        rule.scope,
        rule.algorithm,
        rule.mode,
        ident=f"code:{rule.ident}",
    )


def checked(rule: Rule) -> Rule:
    """The rule, its rate read. Raises ValueError, which says what to write instead."""
    rate, by = rule.rate, rule.by
    if rate is PLAN and (by != "tenant" or rule.burst is not None):
        raise ValueError('Without a rate it is the plan that counts. Write @ratelimit("5/m", ...).')
    if not callable(by) and by not in KINDS and not _named(by):
        raise ValueError(
            f'by={by!r} is not "tenant", "ip", "user", "header:NAME", "field:NAME" or a callable.'
        )
    for name, known in (("algorithm", tuple(ALGORITHMS)), ("mode", MODES)):
        value = getattr(rule, name)
        if value not in known:
            raise ValueError(f"{name}={value!r} is not one of {', '.join(known)}.")
    if not callable(rule.cost):
        check_cost(rule.cost)
    if isinstance(rate, str | Rate):
        rule = replace(rule, rate=rate if isinstance(rate, Rate) else Rate.parse(rate))
        rule.limit(rule.rate)
    return rule


def _named(by: Any) -> bool:
    kind, _, name = str(by).partition(":")
    return kind in ("header", "field") and bool(name)


def enter(rules: Sequence[Rule], request: Any) -> Flow[Decision]:
    """Take from all limits of the rules together, or from none."""
    asking = [rule for rule in rules if rule.applies(request)]
    found: list[Callable[..., Flow[Asked]]] = []
    cost = 0
    for rule in asking:
        find = Effect(_find, sync_to_async(_find) if rule.asks_database() else _afind)
        units, finder = yield find._replace(args=(rule, request))
        cost = max(cost, units)
        found.append(finder)

    def find_all(stale: tuple[str, ...] | None) -> Flow[Asked]:
        parts = []
        for finder in found:
            parts.append((yield from finder(stale)))
        return _together(parts)

    return (yield from count(Operation.TAKE, request, cost, find_all))


def _together(parts: Sequence[Asked]) -> Asked:
    if len(parts) == 1:
        return parts[0]
    versions = {key: version for group, _ in parts for key, version in group.versions}
    slots: dict[tuple[str, str], tuple[Slot, int]] = {}
    for group, costs in parts:
        for slot, cost in zip(group.slots, costs, strict=True):
            name = (slot.subject, slot.limit.ident or slot.limit.name)
            slots[name] = (slot, max(cost, slots[name][1] if name in slots else 0))
    chosen = list(slots.values())
    group = Group(tuple(slot for slot, _ in chosen), tuple(versions.items()))
    return Asked(group, [cost for _, cost in chosen])


async def _afind(rule: Rule, request: Any) -> tuple[int, Any]:
    return _find(rule, request)


def _find(rule: Rule, request: Any) -> tuple[int, Any]:
    """The cost of a request by a rule, and how to get what is asked."""
    cost = rule.cost(request) if callable(rule.cost) else rule.cost
    if rule.rate is PLAN:
        caller = Effect(caller_of, acaller_of, (request,))
        return cost, of_plan(caller, rule.scope, cost)
    asked = NOTHING if is_exempt(request) else _in_code(rule, request, cost)

    def find(stale: tuple[str, ...] | None) -> Flow[Asked]:
        yield from ()
        return asked

    return cost, find


def _in_code(rule: Rule, request: Any, cost: int) -> Asked:
    rate = rule.rate(request) if callable(rule.rate) else rule.rate
    if rate is None:
        return NOTHING
    rate = rate if isinstance(rate, Rate) else Rate.parse(rate)
    subject = None if rate.is_unlimited else _subject(rule, request)
    if subject is None:
        return NOTHING
    per, name = subject
    limit = rule.limit(rate)
    if limit.mode == "off":
        return NOTHING
    mode = "shadow" if conf.MODE == "shadow" else limit.mode
    if (per, mode) != (limit.per, limit.mode):
        limit = replace(limit, per=per, mode=mode)
    return Asked(Group((Slot(limit, name),)), [cost])


def _subject(rule: Rule, request: Any) -> tuple[str, str] | None:
    """Whose bucket it is, and its name in the store; None: do not limit."""
    if rule.by == "ip" or (is_preflight(request) and not callable(rule.by)):
        return _by_address(request) if rule.by == "ip" else None
    if callable(rule.by):
        value = rule.by(request)
        return None if value is None else ("tenant", digest("by", str(value)))
    if rule.by == "tenant":
        tenant = tenant_of(request)
        return ("tenant", digest("tenant", tenant)) if tenant else _by_address(request)
    if rule.by == "user":
        value = by_user(request)
    else:
        kind, _, name = rule.by.partition(":")
        value = _header(request, name) if kind == "header" else _field(request, name)
    return ("tenant", digest("by", str(rule.by), value)) if value else _by_address(request)


def _by_address(request: Any) -> tuple[str, str]:
    return "address", digest("address", address_of(request))


def _header(request: Any, name: str) -> str | None:
    value: str | None = request.META.get("HTTP_" + name.upper().replace("-", "_"))
    return value


def _field(request: Any, name: str) -> str | None:
    """A field of a form or of a JSON object in the body."""
    data = request.data if hasattr(request, "data") else _form_or_json(request)
    value = data.get(name) if hasattr(data, "get") else None
    return str(value) if isinstance(value, str | int | float) else None


def _form_or_json(request: Any) -> Any:
    """What was posted, such that the view can still read the body itself.

    What the view will stumble over anyway is as if nothing had been posted.
    """
    try:
        if request.content_type == "application/json":
            return json.loads(request.body)
        if _fits_in_memory(request):
            # Django parses forms from a body that was read; the other way round is an error.
            request.body  # noqa: B018
        return request.POST
    except (ValueError, SuspiciousOperation, MultiPartParserError):
        return None


def _fits_in_memory(request: Any) -> bool:
    most: int | None = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    length = request.META.get("CONTENT_LENGTH") or "0"
    return not hasattr(request, "_post") and int(length) <= (most or int(length))
