"""Five comparisons, by real requests to a real server, that explain why the defaults are such."""

from __future__ import annotations

from collections.abc import Callable

from . import burst, memory, neighbour, obey, units
from .tables import Table

EXPERIMENTS: dict[str, Callable[[], list[Table]]] = {
    "units": units.run,
    "burst": burst.run,
    "memory": memory.run,
    "neighbour": neighbour.run,
    "obey": obey.run,
}

__all__ = ["EXPERIMENTS", "Table"]
