"""A limit that stands in the place of another one, or of none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ratelimits.limits import Limit
from ratelimits.rates import Rate
from ratelimits.rules import Rule, checked, rate_of


@dataclass(frozen=True)
class Instead:
    """What is None is as it was."""

    name: str
    rate: Rate
    scope: str | None
    burst: int | None
    algorithm: str | None
    mode: str

    @classmethod
    def of(
        cls,
        rate: str | Rate,
        name: str,
        scope: str | None,
        burst: int | None,
        algorithm: str | None,
        mode: str,
    ) -> Instead:
        """Raises ValueError for what no limit can be."""
        if not name:
            raise ValueError("A limit has a name.")
        made = cls(name, rate_of(rate), scope, burst, algorithm, mode)
        if algorithm is not None or not made.rate.is_month:
            made.instead_of(None)
        return made

    @property
    def is_none(self) -> bool:
        """Whether nothing is counted."""
        return self.rate.is_unlimited or self.mode == "off"

    def instead_of(self, limit: Limit | None) -> Limit:
        """Raises ValueError if it can't be counted as that one is."""
        base = limit or Limit(self.name, self.rate)
        scope = base.scope if self.scope is None else self.scope
        algorithm = self.algorithm or base.algorithm
        rule = Rule(self.rate, "ip", scope, 1, None, self.name, self.burst, algorithm, self.mode)
        checked(rule)
        return replace(
            base,
            rate=self.rate,
            burst=self.burst,
            scope=scope,
            algorithm=algorithm,
            mode=self.mode,
        )

    def among(self, limits: Iterable[Limit]) -> tuple[Limit, ...]:
        """These limits, and this one instead of the one that has its name."""
        found = {limit.name: limit for limit in limits}
        found[self.name] = self.instead_of(found.get(self.name))
        return tuple(found.values())
