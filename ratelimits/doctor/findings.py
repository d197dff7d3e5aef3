"""What was found, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Level = Literal["ok", "warning", "problem"]
LEVELS: tuple[Level, ...] = ("ok", "warning", "problem")


@dataclass(frozen=True)
class Finding:
    """One line of the report. `name` and the keys of `value` are stable, the texts are not."""

    name: str
    level: Level
    text: str
    advice: str = ""
    value: Mapping[str, Any] = field(default_factory=dict)


def worst(findings: tuple[Finding, ...]) -> Level:
    """The gravest level among them."""
    return max((finding.level for finding in findings), key=LEVELS.index, default="ok")


def bytes_text(count: int) -> str:
    """A size as people read it."""
    size = float(count)
    for unit in ("bytes", "KB", "MB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GB"


def time_text(seconds: float) -> str:
    """A length of time as people read it, roughly."""
    for length, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}s"
    return f"{seconds:.0f} s"


def number_of(count: int, one: str, many: str = "") -> str:
    """ "1 key", "2 keys"."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
