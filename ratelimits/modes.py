"""The mode of all limits: the setting MODE, or what an operator switched to for a while."""

from __future__ import annotations

import time
from typing import NamedTuple

from .conf import conf

MODES = ("enforce", "shadow", "off")
# Seconds that a switch lasts at most, so that nobody forgets it. What is to stay is a setting.
LONGEST = 86400


class Switch(NamedTuple):
    """A mode in force until a moment (in whole seconds since the epoch), above the setting."""

    mode: str
    until: int

    @property
    def has_ended(self) -> bool:
        return self.until <= time.time()

    @classmethod
    def read(cls, text: str) -> Switch | None:
        """What str() gave; None for anything else, and for one that has ended."""
        mode, _, until = text.partition("@")
        if mode not in MODES or not until.isdecimal():
            return None
        switch = cls(mode, int(until))
        return None if switch.has_ended else switch

    def __str__(self) -> str:
        return f"{self.mode}@{self.until}"


def mode_with(switch: Switch | None) -> str:
    """The mode now, if this is the last switch."""
    if switch is None or switch.has_ended or conf.is_above("MODE"):
        return str(conf.MODE)
    return switch.mode


class Version(NamedTuple):
    """What the plans' version in a store is made of; processes compare it as a whole.

    `everyone` changes if any tenant may have been edited. The `switch` travels in it, so that it
    acts at once also where no plans are read: on limits in code, and in the mode off.
    """

    token: str
    everyone: str = ""
    switch: str = ""

    @classmethod
    def read(cls, text: str) -> Version:
        """An older release's has fewer parts, a newer one's may have more."""
        return cls(*[*text.split("*"), "", ""][:3])

    def __str__(self) -> str:
        return "*".join(self).rstrip("*")
