"""Other limits for a block, whatever plans, tenants and the code say."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from ratelimits.conf import conf
from ratelimits.edits import forget_rows
from ratelimits.rates import Rate

from . import counts
from .blocks import Block, going_before
from .changes import Change, ForEverybody, OfCode, OfPlan, OfTenant, put_in_force
from .instead import Instead


def override(
    rate: str | Rate,
    *,
    name: str = "api",
    plan: str | None = None,
    tenant: str | None = None,
    in_code: bool = False,
    scope: str | None = None,
    burst: int | None = None,
    algorithm: str | None = None,
    mode: str = "enforce",
) -> Block[None]:
    """Put a limit in force for a block, in which all buckets are full.

    For everybody: this one, and those of such blocks around it, instead of all that plans,
    tenants and the service have; no database is asked. With the slug of a `plan` or the key of
    a `tenant`: instead of its limit of this name, or beside the others. With `in_code`: instead
    of the limit that `@ratelimit` or a throttle class publishes by this name. A scope and an
    algorithm that are not said are those of the limit that it replaces.

    Raises ValueError for what can't be counted. A plan that is not there is a LookupError, when
    limits are read.
    """
    if sum((plan is not None, tenant is not None, in_code)) > 1:
        raise ValueError("Say one of plan, tenant and in_code; for several, put one in another.")
    instead = Instead.of(rate, name, scope, burst, algorithm, mode)
    if in_code:
        return Block(partial(_begin, partial(OfCode, instead)))
    if plan is not None:
        return Block(partial(_begin, partial(OfPlan, instead, plan)))
    if tenant is not None:
        return Block(partial(_begin, partial(OfTenant, instead, tenant)))
    return Block(partial(_begin, partial(ForEverybody, instead)))


def _begin(change: Callable[[], Change], stack: ExitStack) -> None:
    stack.callback(forget_rows)
    stack.enter_context(put_in_force(change()))
    if conf.MODE == "off":
        # As tests of something else have it.
        stack.enter_context(going_before(MODE="enforce"))
    counts.begin(stack)
    forget_rows()
