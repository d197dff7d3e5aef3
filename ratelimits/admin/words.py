"""See ratelimits/words.py."""

from __future__ import annotations

from ratelimits.words import count, lasting, local, moment

__all__ = ["count", "lasting", "local", "moment"]
