"""Each store adds up usage in the same way, and loses none of what several processes add."""

from __future__ import annotations

import random
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ratelimits.limits import Owner
from ratelimits.stores.base import Store
from ratelimits.stores.redis import RedisStore
from ratelimits.stores.usage import MemoryTables, Pages, Tables, Wanted
from ratelimits.stores.usage_entries import ALL, REST, Entry, label_of, packed, unpacked
from ratelimits.stores.usage_values import packed as packed_fields
from ratelimits.stores.usage_values import unpacked as unpacked_fields
from ratelimits.usage.pages import field_of
from tests.processes import crowd
from tests.servers import RedisServer

from .shared import SHARED, migrate, settings_for, the_store
from .stores import close, redis_store

_numbers = count()


def pages() -> Pages:
    """Of a minute that nobody counts in."""
    number = next(_numbers)
    return Pages(f"minute {number} {random.random()}", f"hour {number} {random.random()}", 600, 900)


def table(tables: Tables, name: str) -> dict[bytes, Entry]:
    (found,) = tables.read([Wanted(name)])
    return {field: unpacked(value) for field, value in found.items()}


API, SEARCH = label_of("api", ""), label_of("api", "search")


def test_adds_up(real_store: Store) -> None:
    tables, at = real_store.usage, pages()
    first = {b"acme-sealed": packed({"": [2, 1], API: [2, 1]}), ALL: packed({"": [2, 1]})}
    more = {b"acme-sealed": packed({"": [1, 0, 1, 4], SEARCH: [1, 0, 0, 4]}), b"other": packed({})}
    assert tables.add(at, first)[0] > 0
    tables.add(at, more)
    acme = {"": [3, 1, 1, 4, 0, 0], API: [2, 1, 0, 0, 0, 0], SEARCH: [1, 0, 0, 4, 0, 0]}
    assert table(tables, at.minute) == {
        b"acme-sealed": acme,
        b"other": {},
        ALL: {"": [2, 1, 0, 0, 0, 0]},
    }
    # 7 units of the limit in the busiest minute, this one.
    assert table(tables, at.hour)[b"acme-sealed"] == acme | {"\napi": [7, 0, 0, 0, 0, 0]}


def test_the_busiest_minute_of_an_hour(real_store: Store) -> None:
    tables, hour = real_store.usage, pages()
    for units in (3, 9, 4):
        minute = pages()._replace(hour=hour.hour)
        for _ in range(2):
            tables.add(minute, {b"field": packed({API: [units]})})
    (found,) = table(tables, hour.hour).values()
    assert found == {API: [32, 0, 0, 0, 0, 0], "\napi": [18, 0, 0, 0, 0, 0]}


def test_reads_what_is_wanted(real_store: Store) -> None:
    tables, one, other = real_store.usage, pages(), pages()
    fields = [bytes([number]) * 20 for number in range(200)]
    value = packed({"": [1]})
    tables.add(one, dict.fromkeys(fields, value))
    tables.add(other, {fields[3]: value})
    wanted = [
        Wanted(one.minute, (fields[3], b"nobody")),
        Wanted("no such table", (fields[3],)),
        Wanted("no such table"),
        Wanted(other.hour),
        Wanted(one.hour, tuple(fields)),
    ]
    found = [set(table) for table in tables.read(wanted)]
    assert found == [{fields[3]}, set(), set(), {fields[3]}, set(fields)]
    assert tables.read([]) == []


def test_drops(real_store: Store) -> None:
    tables, at = real_store.usage, pages()
    tables.add(at, dict.fromkeys([b"a", b"b", b"c"], packed({"": [1]})))
    tables.drop(at.minute, 600, [b"a", b"c", b"nobody"])
    assert set(table(tables, at.minute)) == {b"b", REST}
    assert set(table(tables, at.hour)) == {b"a", b"b", b"c"}


def test_a_caller_with_too_many_lines(real_store: Store) -> None:
    tables, at = real_store.usage, pages()
    for start in range(0, 100, 10):
        lines = {label_of("api", f"scope {n}"): [1] for n in range(start, start + 10)}
        tables.add(at, {b"field": packed({"": [10], **lines})})
    (found,) = table(tables, at.minute).values()
    assert len(found) == 33
    assert found[""][0] == 100
    assert found[label_of("…", "")][0] == 100 - 31


# Few enough for all to be kept apart: which of more share a line is anybody's choice.
NAMES = ("", "api", "a/b \0\x7f", "“é”", '"\\')
LABELS = st.sampled_from(["", *(label_of(limit, scope) for limit in NAMES for scope in NAMES)])
ENTRIES = st.dictionaries(
    LABELS, st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=6), max_size=16
)
FIELDS = st.sampled_from([b"one", b"two\0\xff", ALL])


def test_scripts_and_functions_agree(memory_and_redis: dict[str, Store]) -> None:
    script = memory_and_redis["django-redis"].usage

    @settings(max_examples=40)
    @given(st.lists(st.dictionaries(FIELDS, ENTRIES, max_size=3), max_size=4))
    def agree(writes: list[dict[bytes, Entry]]) -> None:
        at, functions = pages(), MemoryTables()
        for write in writes:
            values = {field: packed(entry) for field, entry in write.items()}
            assert script.add(at, values) == functions.add(at, values)
        for name in (at.minute, at.hour):
            assert table(script, name) == table(functions, name)

    agree()


@given(fields=st.dictionaries(st.binary(max_size=40), st.binary(max_size=40)), cut=st.integers(0))
def test_parts_of_tables(fields: dict[bytes, bytes], cut: int) -> None:
    value = packed_fields(fields)
    assert unpacked_fields(value) == fields
    some = unpacked_fields(value[: cut % (len(value) + 1)])
    assert some.items() <= fields.items()


@given(st.binary())
def test_rubbish_is_no_usage(value: bytes) -> None:
    for numbers in unpacked(value).values():
        assert len(numbers) == 6


def test_keys_end(redis_server: RedisServer, redis_only: RedisStore) -> None:
    at, client = pages(), redis_server.client()
    redis_only.usage.add(at, {b"field": packed({})})
    redis_only.usage.drop("another table", 600, [b"field"])
    ends = {key: client.ttl(key) for key in client.scan_iter()}
    assert len(ends) == 3
    assert all(590 <= ttl <= 900 for ttl in ends.values())


def test_keys_are_made_as_the_alias_makes_them(redis_server: RedisServer) -> None:
    one = redis_store(redis_server.url, KEY_PREFIX="one", VERSION=7)
    one.usage.add(pages(), {b"field": packed({})})
    keys = [*redis_server.client().scan_iter()]
    assert len(keys) == 2
    assert all(key.startswith(b"one:7:{rl}") for key in keys)
    close(one)


def test_sizes_are_as_the_documentation_says(
    redis_server: RedisServer, redis_only: RedisStore
) -> None:
    """Of callers with three limits that are asked for all the time."""
    lines = {"": [5, 1], label_of("second", ""): [5], label_of("hour", ""): [5, 1], API: [5]}
    fields = [field_of(Owner("tenant", f"org:{number:06}")) for number in range(1000)]
    at = pages()
    for start in range(0, 1000, 50):
        redis_only.usage.add(at, dict.fromkeys(fields[start : start + 50], packed(lines)))
    client = redis_server.client()
    sizes = sorted(client.memory_usage(key, samples=0) or 0 for key in client.scan_iter())
    assert 140_000 < sizes[0] < 190_000
    assert sizes[0] < sizes[1] < 260_000


WRITES, CALLERS = 40, 5


def add_often(index: int, minute: str, hour: str) -> list[list[int]]:
    """What there is after that, by caller and of everybody, in the minute and in the hour."""
    tables, at = the_store().usage, Pages(minute, hour, 600, 900)
    for number in range(WRITES):
        field = b"caller %d" % (number % CALLERS)
        tables.add(at, {field: packed({"": [1], API: [1]}), ALL: packed({"": [1]})})
    found = [table(tables, name) for name in (minute, hour)]
    return [[entries[field][""][0] for field in sorted(entries)] for entries in found]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", SHARED)
def test_processes_lose_nothing(name: str, start_server: Any, tmp_path: Path) -> None:
    settings = settings_for(name, start_server, tmp_path)
    at = pages()
    with crowd(3, settings) as processes:
        if name == "postgresql":
            processes.run(migrate, count=1)
        found = processes.run(add_often, at.minute, at.hour)
    everybody = 3 * WRITES
    # Whoever was the last to read has seen everything.
    assert max(found) == [[everybody, *[everybody // CALLERS] * CALLERS]] * 2
