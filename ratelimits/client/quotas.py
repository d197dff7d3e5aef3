"""What a server says of one limit, and its two ways to say it: structured, or field by field."""

from __future__ import annotations

from typing import NamedTuple


class Quota(NamedTuple):
    """One limit of theirs, as far as it was told; None is what was not.

    `limit` are units per `window` seconds, `remaining` whole units that are left, `reset` seconds
    until there are more, or until which no more than `remaining` may be used.
    """

    name: str = ""
    limit: int | None = None
    remaining: int | None = None
    reset: float | None = None
    window: float | None = None

    def joined(self, other: Quota) -> Quota:
        """With what another one knows of the same limit."""
        return Quota(
            self.name,
            other.limit if self.limit is None else self.limit,
            other.remaining if self.remaining is None else self.remaining,
            other.reset if self.reset is None else self.reset,
            other.window if self.window is None else self.window,
        )
