"""What holds for a block holds in whatever form tests are written, and ends in any order."""

from __future__ import annotations

import asyncio
import inspect
import unittest
from collections.abc import AsyncIterator, Generator
from typing import Any

import pytest
from django.test import SimpleTestCase

from ratelimits import entering, rows
from ratelimits.conf import above
from ratelimits.limiter import take
from ratelimits.testing import fresh_counts, frozen, off, override

pytestmark = pytest.mark.usefixtures("still")


def passes(times: int) -> list[bool]:
    return [take("acme").allowed for _ in range(times)]


def ran(*tests: type[unittest.TestCase]) -> int:
    """How many there were, all of which have passed."""
    result = unittest.TestResult()
    for each in tests:
        unittest.defaultTestLoader.loadTestsFromTestCase(each).run(result)
    assert (result.errors, result.failures) == ([], [])
    return result.testsRun


# Classes of tests.


def of_two(base: type[unittest.TestCase], passing: list[bool]) -> Any:
    class Tests(base):  # type: ignore[misc, valid-type]
        def test_one(self) -> None:
            self.assertEqual(passes(3), passing)

        def test_another(self) -> None:
            self.assertEqual(passes(3), passing)

    return Tests


@pytest.mark.parametrize("base", [unittest.TestCase, SimpleTestCase])
def test_classes_that_are_made_from_one(base: type[unittest.TestCase]) -> None:
    """Also those that do not call the setUp() of what they are made from, which most never need."""
    tests = override("2/d")(of_two(base, [True, True, False]))

    class Silent(tests):  # type: ignore[misc, valid-type]
        def setUp(self) -> None:
            self.held = passes(1)

        def tearDown(self) -> None:
            self.assertEqual((self.held, passes(1)), ([True], [False]))

        def test_one(self) -> None:
            self.assertEqual(passes(2), [True, False])

        test_another = test_one

    class Beside(tests):  # type: ignore[misc, valid-type]
        def test_more(self) -> None:
            self.assertEqual(passes(3), [True, True, False])

    assert ran(tests, Silent, Beside) == 7
    assert above == []


@pytest.mark.parametrize("base", [unittest.TestCase, SimpleTestCase])
def test_what_a_class_says_itself_goes_before_what_it_is_made_from(
    base: type[unittest.TestCase],
) -> None:
    two = override("2/d")(of_two(base, [True, True, False]))

    @override("1/d")
    class One(two):  # type: ignore[misc, valid-type]
        def test_one(self) -> None:
            self.assertEqual(passes(3), [True, False, False])

        test_another = test_one

    @off()
    class Off(One):
        def test_one(self) -> None:
            self.assertEqual(passes(3), [True] * 3)

        test_another = test_one

    assert ran(two, One, Off) == 6
    # As with functions, the lower one is within the other.
    assert ran(off()(override("2/d")(of_two(base, [True, True, False])))) == 2
    assert ran(override("2/d")(off()(of_two(base, [True] * 3)))) == 2


def test_what_runs_a_test_for_a_debugger() -> None:
    tests = override("2/d")(of_two(SimpleTestCase, [True, True, False]))
    tests("test_one").debug()
    assert above == []


# Functions that yield, as fixtures do.


@override("1/d")
def yielding(first: int) -> Generator[Any, None, None]:
    yield passes(first)
    yield passes(1)


@override("1/d")
async def ayielding(first: int) -> AsyncIterator[Any]:
    yield passes(first)
    yield passes(1)


async def test_functions_that_yield() -> None:
    assert list(yielding(1)) == [[True], [False]]
    assert [value async for value in ayielding(1)] == [[True], [False]]
    # For pytest these are fixtures that go on after the test.
    assert inspect.isgeneratorfunction(yielding)
    assert inspect.isasyncgenfunction(ayielding)
    half = yielding(2)
    assert (next(half), passes(1)) == ([True, False], [False])
    half.close()
    assert above == []


# The order in which they end.


def unchanged() -> tuple[Any, ...]:
    return rows.load_plans, rows.load_tenant, entering._group, *above


@pytest.mark.parametrize(
    "options", [{}, {"tenant": "acme"}, {"plan": "free"}, {"in_code": True}], ids=str
)
def test_whichever_ends_first(options: dict[str, Any]) -> None:
    before = unchanged()
    outer, inner = override("1/d", **options), override("3/d", name="more")
    outer.enable()
    inner.enable()
    outer.disable()
    assert [outcome.name for outcome in take("acme").outcomes] == ["more"]
    inner.disable()
    assert unchanged() == before


async def test_tasks_that_end_when_they_like() -> None:
    before = unchanged()

    async def task(ends: list[asyncio.Event]) -> None:
        async with override("1/d"), fresh_counts():
            ends[0].set()
            await ends[1].wait()

    # The second one begins before the first one ends.
    first, second = asyncio.Event(), asyncio.Event()
    tasks = task([first, second]), task([second, first])
    await asyncio.wait_for(asyncio.gather(*tasks), 30)
    assert unchanged() == before


def test_a_generator_that_is_ended_later() -> None:
    before = unchanged()
    half = yielding(1)
    next(half)
    with override("2/d", name="more"):
        half.close()
        assert passes(3) == [True, True, False]
    assert unchanged() == before


def test_one_that_can_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    before = unchanged()
    with pytest.raises(ValueError, match="moment"), override("1/d"), frozen("no moment"):
        pass
    assert unchanged() == before
