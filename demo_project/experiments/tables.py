from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple


class Table(NamedTuple):
    """What an experiment found. All rows have the same columns."""

    title: str
    rows: Sequence[dict[str, Any]]
    # What it means, and how it was measured where that is not by plain requests.
    notes: Sequence[str] = ()
    # Columns for programs, which are not printed.
    hidden: Sequence[str] = ()


def lines(table: Table) -> Iterator[str]:
    """The table as text. Numbers are set to the right."""
    columns = [column for column in table.rows[0] if column not in table.hidden]
    cells = [[_shown(row[column]) for column in columns] for row in table.rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    right = [isinstance(table.rows[0][column], int | float) for column in columns]
    yield table.title
    for row in (columns, ["-" * width for width in widths], *cells):
        aligned = [
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, is_number in zip(row, widths, right, strict=True)
        ]
        yield ("  " + "  ".join(aligned)).rstrip()
    yield from table.notes


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
