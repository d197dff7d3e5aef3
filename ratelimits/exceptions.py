"""Everything this package raises on purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .limits import Decision


class RateLimitError(Exception):
    """Base class of the package's own errors. Not raised itself."""


class StoreUnavailable(RateLimitError):
    """The store that holds the counts can't be reached or can't answer now."""


class InvalidStore(StoreUnavailable):
    """Nothing can be counted on the cache alias as it is set."""


class StoreBusy(StoreUnavailable):
    """The store answers, but others were faster for as long as a call may take."""


class PartUnavailable(StoreBusy):
    """One server of several is away. The others are there, and somebody looks after that one."""


class StoreError(RateLimitError):
    """The store answered with something that only a bug or a foreign key explains."""


class CatalogUnavailable(RateLimitError):
    """The limits can't be read from the database, and none are known from before."""


class PlanUnknown(RateLimitError):
    """The project's callable of the setting PLAN failed."""


class RateLimited(RateLimitError):
    """Raise it with a refused decision, and the middleware answers the request with it."""

    def __init__(self, decision: Decision) -> None:
        self.decision = decision
        super().__init__("The request exceeds a rate limit.")
