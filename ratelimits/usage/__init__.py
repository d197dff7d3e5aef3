"""What was asked and refused: counted for each caller, limit and scope, by minute and by hour."""

from __future__ import annotations

from .ranking import refused_now, top
from .reading import history, peaks, recent, totals
from .recorder import recorder as own
from .shadows import Shadow, shadows
from .values import Counts, History, Line, Peak, Point, Refusal, Top, Used


def flush() -> None:
    """Write now what this process has counted. Raises StoreUnavailable."""
    own.flush()


__all__ = [
    "Counts",
    "History",
    "Line",
    "Peak",
    "Point",
    "Refusal",
    "Shadow",
    "Top",
    "Used",
    "flush",
    "history",
    "peaks",
    "recent",
    "refused_now",
    "shadows",
    "top",
    "totals",
]
