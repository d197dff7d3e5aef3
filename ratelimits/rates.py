"""Rates: so many units per window, as people write them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from .describing import UNITS, describe, split
from .texts import gettext as _

_NAMES = {
    "s": ("s", "sec", "secs", "second", "seconds"),
    "m": ("m", "min", "mins", "minute", "minutes"),
    "h": ("h", "hr", "hrs", "hour", "hours"),
    "d": ("d", "day", "days"),
    "w": ("w", "week", "weeks"),
    "month": ("month", "months"),
}
_UNIT_OF = {name: unit for unit, names in _NAMES.items() for name in names}
_FORM = re.compile(r"([0-9]{1,20}) ?(?:/| per ) ?([0-9]{1,12})? ?([a-z]+)")

# A trillion units still leaves room for exact arithmetic in the store's doubles.
MAX_QUOTA = 10**12
MAX_WINDOW = 366 * 86400


@dataclass(frozen=True, slots=True)
class Rate:
    """So many units per window; `quota` None is unlimited.

    `window` is in seconds. A calendar month has no fixed length: its window is 0 and
    `is_month` is true. Two rates are equal if they allow the same, however written.
    """

    quota: int | None
    window: int = 1
    text: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.quota is None:
            return
        if not 0 <= self.quota <= MAX_QUOTA:
            raise ValueError(f"A rate's quota is from 0 to {MAX_QUOTA}, not {self.quota}.")
        if not 0 <= self.window <= MAX_WINDOW:
            raise ValueError(f"A rate's window is at most 366 days, not {self.window} seconds.")

    @classmethod
    def parse(cls, text: str) -> Rate:
        """Read `10/s`, `10/5m`, `100 per hour`, `100000/month` or `unlimited`.

        Raises ValueError, which quotes the text, for anything else.
        """
        return _parse(str(text))

    @property
    def is_unlimited(self) -> bool:
        return self.quota is None

    @property
    def is_month(self) -> bool:
        return self.quota is not None and self.window == 0

    def __str__(self) -> str:
        return self.text or self.canonical()

    def canonical(self) -> str:
        """The shortest way to write it: `10/5m`."""
        if self.quota is None:
            return "unlimited"
        count, unit = split(self.window)
        return f"{self.quota}/{count if count != 1 else ''}{unit}"

    def describe(self) -> str:
        """In words: `100 requests per 5 minutes`."""
        return describe(self.quota, self.window)


def _bad(text: str, why: str) -> ValueError:
    shown = text if len(text) <= 60 else text[:60] + "..."
    told = _('"%(text)s" is not a rate: %(why)s. Write for example "100/m" or "10/5m".')
    return ValueError(told % {"text": shown, "why": why})


@lru_cache(maxsize=4096)
def _parse(text: str) -> Rate:
    cleaned = " ".join(text.split())
    if cleaned == "unlimited":
        return Rate(None, 1, cleaned)
    match = _FORM.fullmatch(cleaned)
    if match is None:
        raise _bad(text, _("it must be a number, a slash and a period"))
    quota, count, word = int(match[1]), int(match[2] or 1), match[3]
    unit = _UNIT_OF.get(word)
    if unit is None:
        raise _bad(text, _('"%s" is no period (s, m, h, d, w or month)') % word)
    if quota > MAX_QUOTA:
        raise _bad(text, _("the quota is above %d") % MAX_QUOTA)
    return Rate(quota, _window(text, count, unit), cleaned)


def _window(text: str, count: int, unit: str) -> int:
    if count == 0:
        raise _bad(text, _("the period is zero"))
    if unit == "month":
        if count != 1:
            raise _bad(text, _("a calendar month can't be multiplied; write 30d for thirty days"))
        return 0
    window = count * UNITS[unit]
    if window > MAX_WINDOW:
        raise _bad(text, _("the period is above 366 days"))
    return window
