"""The path of every request: who, which limits, one operation on the store, the decision."""

from __future__ import annotations

from .algorithms import Operation
from .effects import adrive, drive
from .flow import forget, operate
from .limits import Decision
from .who import Who


def take(who: Who, *, scope: str = "", cost: int = 1) -> Decision:
    """Take units from all limits that apply, or from none.

    `who` is a tenant's key or a request; for a request, the same limit is counted once however
    often it is asked, at the highest cost. Raises ValueError for a cost below 0.
    """
    return drive(operate(Operation.TAKE, who, scope, cost))


async def atake(who: Who, *, scope: str = "", cost: int = 1) -> Decision:
    """See take()."""
    return await adrive(operate(Operation.TAKE, who, scope, cost, is_async=True))


def peek(who: Who, *, scope: str = "", cost: int = 1) -> Decision:
    """The decision that take() would give. Nothing is taken."""
    return drive(operate(Operation.PEEK, who, scope, cost))


async def apeek(who: Who, *, scope: str = "", cost: int = 1) -> Decision:
    """See peek()."""
    return await adrive(operate(Operation.PEEK, who, scope, cost, is_async=True))


def charge(who: Who, *, scope: str = "", cost: int) -> Decision:
    """Take units after the fact: what is left at most, never refusing, leaving no debt."""
    return drive(operate(Operation.CHARGE, who, scope, cost))


async def acharge(who: Who, *, scope: str = "", cost: int) -> Decision:
    """See charge()."""
    return await adrive(operate(Operation.CHARGE, who, scope, cost, is_async=True))


def refund(who: Who, *, scope: str = "", cost: int) -> Decision:
    """Give units back. A window that has ended is not credited."""
    return drive(operate(Operation.REFUND, who, scope, cost))


async def arefund(who: Who, *, scope: str = "", cost: int) -> Decision:
    """See refund()."""
    return await adrive(operate(Operation.REFUND, who, scope, cost, is_async=True))


def reset(who: Who) -> None:
    """Forget what a caller has used, in all scopes. What everybody shares stays counted.

    Raises StoreUnavailable if the store is away, CatalogUnavailable if the limits are.
    """
    drive(forget(who))


async def areset(who: Who) -> None:
    """See reset()."""
    await adrive(forget(who))


__all__ = [
    "acharge",
    "apeek",
    "arefund",
    "areset",
    "atake",
    "charge",
    "peek",
    "refund",
    "reset",
    "take",
]
