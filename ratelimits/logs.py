"""The package's logger, and messages that are worth one line, not one for each request."""

from __future__ import annotations

import logging

logger = logging.getLogger("ratelimits")

# A message names what is wrong, and there could be as many as there are rows.
_MOST = 1000


class Once:
    """Says each message a single time in the life of the process, or one of each topic."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def warning(self, message: str, topic: str = "") -> None:
        self._say(logging.WARNING, message, topic)

    def error(self, message: str, topic: str = "", cause: BaseException | None = None) -> None:
        self._say(logging.ERROR, message, topic, cause)

    def _say(
        self, level: int, message: str, topic: str = "", cause: BaseException | None = None
    ) -> None:
        topic = topic or message
        if topic not in self._said and len(self._said) < _MOST:
            self._said.add(topic)
            logger.log(level, message, exc_info=cause)

    def forget(self) -> None:
        """Everything may be said again."""
        self._said.clear()


once = Once()
