"""Usage in Redis and Valkey: a hash for each table, all of them in one hash slot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from .usage import Pages, Tables, Wanted
from .usage_entries import MOST_LINES, MOST_LINES_OF_ALL

# What one call reads at most, since the server does nothing else meanwhile: so many fields of
# each of so many tables. A list of a hundred tenants is one call.
MOST_FIELDS, MOST_TABLES = 125, 80
READ = """
local answers = {}
for place, key in ipairs(KEYS) do
    answers[place] = redis.call('HMGET', key, unpack(ARGV))
end
return answers
"""
DROP = """
redis.call('HDEL', KEYS[1], unpack(ARGV, 2))
redis.call('HSETNX', KEYS[1], 'rest', '')
redis.call('EXPIRE', KEYS[1], ARGV[1])
"""


@cache
def script() -> str:
    """What counts."""
    return (Path(__file__).parent / "usage.lua").read_text()


class RedisTables(Tables):
    """`do` sends a command for keys that `make_key` makes, and gives the reply."""

    def __init__(self, do: Callable[..., Any], make_key: Callable[[str], str]) -> None:
        self._do = do
        self._make_key = make_key

    def add(self, pages: Pages, entries: Mapping[bytes, bytes]) -> tuple[int, int]:
        keys = self._make_key(pages.minute), self._make_key(pages.hour)
        kept = pages.minute_seconds, pages.hour_seconds
        pairs = [part for pair in entries.items() for part in pair]
        lines = MOST_LINES, MOST_LINES_OF_ALL
        minute, hour = self._do("EVAL", script(), 2, *keys, *kept, *lines, *pairs)
        return minute, hour

    def read(self, wanted: Sequence[Wanted]) -> list[dict[bytes, bytes]]:
        found: list[dict[bytes, bytes]] = [{} for _ in wanted]
        for fields in dict.fromkeys(fields for _, fields in wanted):
            places = [place for place, (_, asked) in enumerate(wanted) if asked == fields]
            if fields is None:
                for place in places:
                    found[place] = self._whole(wanted[place].table)
                continue
            for some, part in _parts(places, fields):
                keys = [self._make_key(wanted[place].table) for place in some]
                replies = self._do("EVAL", READ, len(keys), *keys, *part)
                for place, reply in zip(some, replies, strict=True):
                    pairs = zip(part, reply, strict=True)
                    found[place].update((name, value) for name, value in pairs if value is not None)
        return found

    def _whole(self, table: str) -> dict[bytes, bytes]:
        """One command for each table: of many at once, others would wait for the server."""
        reply = self._do("HGETALL", self._make_key(table))
        return reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2], strict=True))

    def drop(self, table: str, seconds: int, fields: Sequence[bytes]) -> None:
        self._do("EVAL", DROP, 1, self._make_key(table), seconds, *fields)


def _parts(
    places: Sequence[int], fields: tuple[bytes, ...]
) -> Iterator[tuple[Sequence[int], tuple[bytes, ...]]]:
    """What to read in one call each."""
    for first in range(0, len(fields), MOST_FIELDS):
        for start in range(0, len(places), MOST_TABLES):
            yield places[start : start + MOST_TABLES], fields[first : first + MOST_FIELDS]
