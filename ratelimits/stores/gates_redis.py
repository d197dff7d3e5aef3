"""Books of calls in Redis and Valkey: a hash each, changed by one script."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha1
from pathlib import Path
from typing import Any

from redis.exceptions import NoScriptError

from ratelimits.pacing.calls import Call, Reply, Verdict

from .gates import MOST_NAMES, NAMES_KEPT, Gates, Keys, Look

ANNOUNCE = """
redis.call('ZADD', KEYS[1], redis.call('TIME')[1], ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
"""
LOOK = """
return {redis.call('TIME'), redis.call('HGETALL', KEYS[1]), redis.call('HGETALL', KEYS[2])}
"""


@cache
def script() -> tuple[str, str]:
    """The script's text and its digest."""
    text = (Path(__file__).parent / "gate.lua").read_text()
    return text, sha1(text.encode(), usedforsecurity=False).hexdigest()


class RedisGates(Gates):
    """`do` sends a command for keys that `make_key` makes, and gives the reply."""

    def __init__(self, do: Callable[..., Any], make_key: Callable[[str], str]) -> None:
        self._do = do
        self._make_key = make_key

    def run(self, call: Call, keys: Keys, version: str, now: int | None = None) -> Reply:
        text, digest = script()
        parts = (3, *map(self._make_key, keys), *_arguments(call, version, now))
        try:
            reply = self._do("EVALSHA", digest, *parts)
        except NoScriptError:
            reply = self._do("EVAL", text, *parts)
        verdict, time, at, ident, by = reply
        return Reply(Verdict(verdict), int(time), int(at), ident.decode(), by.decode())

    def look(self, keys: Keys) -> Look:
        book, share, _ = map(self._make_key, keys)
        (seconds, rest), *books = self._do("EVAL", LOOK, 2, book, share)
        return Look(int(seconds) * 1_000_000 + int(rest), *map(_fields, books))

    def announce(self, key: str, name: str) -> None:
        self._do("EVAL", ANNOUNCE, 1, self._make_key(key), name, MOST_NAMES, NAMES_KEPT)

    def announced(self, key: str) -> list[str]:
        names = self._do("ZREVRANGE", self._make_key(key), 0, -1)
        return [name.decode() for name in names]


def _arguments(call: Call, version: str, now: int | None) -> Iterator[str | int]:
    yield call.action.value
    yield "" if now is None else now
    yield version
    yield from (call.budget, call.guard, call.slot, int(call.has_share), call.refused)
    yield from (call.by, call.seen, len(call.asks), len(call.shares), len(call.told))
    for ask in (*call.asks, *call.shares):
        yield from (ask.ident, int(ask.is_window), ask.units, ask.need, ask.unit)
        yield from (ask.reach, ask.window, ask.quota)
    for told in call.told:
        yield from told


def _fields(pairs: Any) -> dict[str, str]:
    """What HGETALL gives, in either version of the protocol."""
    items = pairs.items() if isinstance(pairs, dict) else zip(pairs[::2], pairs[1::2], strict=True)
    return {name.decode(): value.decode("utf-8", "replace") for name, value in items}
