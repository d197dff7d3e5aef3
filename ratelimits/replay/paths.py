"""Which calls count, in which scope and at which cost, by their paths."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from .formats import unescaped

# Of the paths that were met.
MOST_KEPT = 100_000
_METHOD = re.compile(r"[A-Z]+ ")


class Kind(NamedTuple):
    """What tells how a call counts."""

    scope: str = ""
    cost: int = 1


class Paths:
    """Scopes by prefixes of paths, the longest first; `*` stands for one part of a path."""

    def __init__(
        self,
        scopes: Iterable[tuple[str, str]] = (),
        only: Sequence[str] = (),
        costs: Mapping[str, int] | None = None,
    ) -> None:
        longest_first = sorted(scopes, key=lambda entry: len(entry[1]), reverse=True)
        self._scopes = [(scope, _pattern(prefix)) for scope, prefix in longest_first]
        self._only = [_pattern(prefix) for prefix in only]
        # Those that are set, which go before what a line says.
        self.costs = costs or {}
        self._kept: dict[str, Kind | None] = {}
        self.everything = Kind("", self.costs.get("", 1))
        # Otherwise nobody needs to look at them.
        self.matter = bool(self._scopes or self._only)

    def kind(self, request: str) -> Kind | None:
        """How a call counts; None if it is not among those that do."""
        try:
            return self._kept[request]
        except KeyError:
            pass
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        kind = self._kept[request] = self._kind(path_of(request))
        return kind

    def _kind(self, path: str) -> Kind | None:
        if self._only and not any(pattern.match(path) for pattern in self._only):
            return None
        scope = next((name for name, pattern in self._scopes if pattern.match(path)), "")
        return Kind(scope, self.costs.get(scope, 1))


def path_of(request: str) -> str:
    """The path of a request as logs write it: `GET /a%20b?c HTTP/1.1`, `/a%20b?c` or `/a b`."""
    request = unescaped(request)
    if _METHOD.match(request):
        request = request.partition(" ")[2].rpartition(" HTTP/")[0] or request.partition(" ")[2]
    return unquote(request.partition("?")[0])


def _pattern(prefix: str) -> re.Pattern[str]:
    return re.compile("[^/]*".join(map(re.escape, prefix.split("*"))))
