"""What stands in for a store that does not exist, so that requests are answered even so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ratelimits.algorithms import Operation
from ratelimits.exceptions import StoreUnavailable

from .base import Answer, Group, Store


class MissingStore(Store):
    """Always away. The reason is the system check's, which was not listened to."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def run(
        self, operation: Operation, group: Group, costs: Sequence[int], now: int | None = None
    ) -> Answer:
        raise StoreUnavailable(self.reason)

    def versions(self, keys: Sequence[str]) -> tuple[str, ...]:
        raise StoreUnavailable(self.reason)

    def set_versions(self, versions: Mapping[str, str], seconds: int) -> None:
        raise StoreUnavailable(self.reason)

    def count_processes(self, ident: str, seconds: int) -> int:
        raise StoreUnavailable(self.reason)

    def reset(self, group: Group, subjects: Sequence[str] = ()) -> None:
        raise StoreUnavailable(self.reason)
