"""Limits at a view, as `@ratelimit` states them: the tenant's plan, or one written in code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from .algorithms import ALGORITHMS
from .flow import check_cost
from .limits import Limit
from .naming import Named
from .rates import Rate
from .validation import MAX_BURST, limit_errors

# Written for a rate: the limits of the tenant's plan.
PLAN = object()
KINDS = ("tenant", "ip", "user")
MODES = ("enforce", "shadow", "off")


@dataclass(frozen=True)
class Rule:
    """One `@ratelimit`. What is callable is asked at each request.

    `own_name` is false if the view names it; then `depth` tells it from others at that view.
    """

    rate: Any
    by: Any
    scope: str
    cost: Any
    methods: frozenset[str] | None
    name: str
    burst: int | None
    algorithm: str
    mode: str
    ident: str = ""
    own_name: bool = True
    depth: int = 0

    def applies(self, request: Any) -> bool:
        """Whether it is for this method. HEAD is GET without the body."""
        method = "GET" if request.method == "HEAD" else request.method
        return self.methods is None or method in self.methods

    def limit(self, rate: Rate) -> Limit:
        return _limit(self, rate)

    @property
    def may_ask_who(self) -> bool:
        """Whether it needs a request of which it is known who makes it."""
        asked = (self.rate, self.by, self.cost)
        return self.rate is PLAN or self.by in ("tenant", "user") or any(map(callable, asked))

    def named(self, named: Named) -> Rule:
        """The rule as it is called at a view."""
        if self.own_name:
            return self
        suffix = f"-{self.depth + 1}" if self.depth else ""
        return replace(self, name=named.shown + suffix, ident=named.ident + suffix)


@lru_cache(maxsize=1024)
def _limit(rule: Rule, rate: Rate) -> Limit:
    """Raises ValueError if the rule can't have this rate."""
    errors = {} if rate.is_unlimited else limit_errors(rate, rule.burst, rule.algorithm)
    if errors:
        wrong = " ".join(map(str, errors.values()))
        raise ValueError(f'The limit "{rule.name or rate}": {wrong}')
    return Limit(
        rule.name,
        rate,
        rule.burst,
        rule.scope,
        rule.algorithm,
        rule.mode,
        ident=f"code:{rule.ident or rule.name}",
    )


def methods_of(methods: str | Sequence[str] | None) -> frozenset[str] | None:
    """Raises ValueError for what would limit nothing, or other than it says."""
    if methods is None:
        return None
    names = frozenset(name.upper() for name in ([methods] if isinstance(methods, str) else methods))
    if not names or ("HEAD" in names and "GET" not in names):
        raise ValueError(
            f"methods={methods!r} would limit nothing. HEAD counts as GET; None is all methods."
        )
    return names


def checked(rule: Rule) -> Rule:
    """The rule, its rate read. Raises ValueError, which says what to write instead."""
    if rule.rate is PLAN:
        _check_plan(rule)
    by = rule.by
    if not callable(by) and by not in KINDS and not _is_named(by):
        raise ValueError(
            f'by={by!r} is not "tenant", "ip", "user", "header:NAME", "field:NAME" or a callable.'
        )
    for name, known in (("algorithm", tuple(ALGORITHMS)), ("mode", MODES)):
        value = getattr(rule, name)
        if value not in known:
            raise ValueError(f"{name}={value!r} is not one of {', '.join(known)}.")
    if rule.burst is not None and not _is_burst(rule.burst):
        raise ValueError(f"burst={rule.burst!r} is not a whole number from 1 to {MAX_BURST}.")
    if not callable(rule.cost):
        check_cost(rule.cost)
    return _with_rate(rule)


def _is_burst(burst: object) -> bool:
    return isinstance(burst, int) and not isinstance(burst, bool) and 1 <= burst <= MAX_BURST


def _with_rate(rule: Rule) -> Rule:
    rate = rule.rate
    if rate is PLAN or rate is None or (callable(rate) and not isinstance(rate, type)):
        return rule
    rule = replace(rule, rate=rate_of(rate))
    rule.limit(rule.rate)
    return rule


def rate_of(value: Any) -> Rate:
    """A rate as text or ready made. Raises ValueError for anything else."""
    if isinstance(value, Rate):
        return value
    if not isinstance(value, str):
        raise ValueError(f'{value!r} is not a rate. Write for example "100/m" or "10/5m".')
    return Rate.parse(value)


def _check_plan(rule: Rule) -> None:
    """All of this is the plan's to say."""
    usual = {"by": "tenant", "burst": None, "algorithm": "token_bucket", "mode": "enforce"}
    for name, value in usual.items():
        if getattr(rule, name) != value:
            raise ValueError(
                f"Without a rate it is the plan that counts, and {name} is the plan's to say. "
                'Write @ratelimit("5/m", ...).'
            )


def _is_named(by: Any) -> bool:
    kind, _, name = str(by).partition(":")
    return kind in ("header", "field") and bool(name)
