"""What was found, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

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
    if count < 1024:
        return ngettext("%(count)s byte", "%(count)s bytes", count) % {"count": count}
    size = count / 1024
    for unit in ("KB", "MB"):
        if size < 1024:
            return f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GB"


def time_text(seconds: float) -> str:
    """A length of time as people read it, roughly."""
    if seconds >= 2 * 86400:
        return _("%(count)s days") % {"count": f"{seconds / 86400:.0f}"}
    if seconds >= 2 * 3600:
        return _("%(count)s hours") % {"count": f"{seconds / 3600:.0f}"}
    if seconds >= 2 * 60:
        return _("%(count)s minutes") % {"count": f"{seconds / 60:.0f}"}
    return _("%(count)s s") % {"count": f"{seconds:.0f}"}
