"""Tables for terminals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ratelimits.words import visible


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Columns as wide as what is in them."""
    shown = [[visible(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()
