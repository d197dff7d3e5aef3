"""What is done with an answer: methods, statuses and header fields, as a table."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ratelimits.client.policy import (
    ABSURD,
    IDEMPOTENT,
    MOST_FAILURES,
    MOST_REFUSALS,
    Act,
    Answer,
    Call,
    Failure,
    backoff,
    decide,
    decide_failure,
    floor_of,
)
from ratelimits.pacing.terms import Pace, Terms

TERMS = Terms("vendor", max_wait=5, statuses=frozenset({403, 503, 529}))
METHODS = [*sorted(IDEMPOTENT), "POST", "PATCH"]
TOLD = {"retry-after": "2"}
RETURN, AGAIN, LATER = Act


def pace(quota: int, seconds: float) -> Pace:
    return Pace("1", "", "bucket", quota, int(seconds * 1e6), quota)


def after(status: int, fields: dict[str, str], **call: Any) -> tuple[Act, float, float]:
    """What is done, how long this call waits, and how long everybody does."""
    call.setdefault("method", "POST")
    verdict = decide(Call(**call), Answer(status, fields), TERMS, 0.5)
    return verdict.act, verdict.wait, verdict.block


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("status", "fields"),
    [
        (429, TOLD),
        (429, {"retry-after-ms": "2000"}),
        (429, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "2"}),
        (403, TOLD),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "2"}),
        (503, TOLD),
        (529, TOLD),
    ],
)
def test_refusals_are_repeated_whatever_the_method(
    method: str, status: int, fields: dict[str, str]
) -> None:
    assert after(status, fields, method=method) == (AGAIN, 2, 2)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("status", [200, 202, 204, 301, 304, 400, 401, 404, 413, 500, 501])
def test_other_answers_are_the_callers(method: str, status: int) -> None:
    assert after(status, TOLD, method=method) == (RETURN, 0, 0)


@pytest.mark.parametrize("fields", [{}, {"x-ratelimit-remaining": "7", "x-ratelimit-reset": "2"}])
def test_a_status_that_means_something_else_is_no_refusal_by_itself(fields: dict[str, str]) -> None:
    assert after(403, fields) == (RETURN, 0, 0)


def test_a_status_that_means_nothing_else_is_a_refusal_by_itself() -> None:
    assert after(529, {})[0] is AGAIN


def test_statuses_are_each_upstreams_own() -> None:
    verdict = decide(Call("GET"), Answer(403, TOLD), Terms("other"), 0.5)
    assert verdict.act is RETURN


@pytest.mark.parametrize("status", [502, 503, 504])
@pytest.mark.parametrize("fields", [{}, {"retry-after": "2"}])
@pytest.mark.parametrize("is_keyed", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_faults_are_repeated_where_twice_is_as_good_as_once(
    method: str, is_keyed: bool, fields: dict[str, str], status: int
) -> None:
    terms = Terms("vendor")
    verdict = decide(Call(method, keyed=is_keyed), Answer(status, fields), terms, 0.5)
    assert (verdict.act is AGAIN) == (is_keyed or method in IDEMPOTENT)
    # What is told is told to everybody, whatever becomes of this call.
    assert verdict.block == (2 if fields else 0)
    assert not verdict.is_refusal


@pytest.mark.parametrize(
    ("failure", "method", "act"),
    [
        (Failure.UNSENT, "POST", AGAIN),
        (Failure.UNSENT, "GET", AGAIN),
        (Failure.UNANSWERED, "GET", AGAIN),
        (Failure.UNANSWERED, "POST", RETURN),
    ],
)
def test_failures(failure: Failure, method: str, act: Act) -> None:
    assert decide_failure(Call(method), failure, TERMS, 0.5).act is act
    assert decide_failure(Call(method, keyed=True), failure, TERMS, 0.5).act is AGAIN
    assert decide_failure(Call(method, replays=False), failure, TERMS, 0.5).act is RETURN


def test_no_more_than_so_many_refusals_and_faults() -> None:
    assert after(429, TOLD, refusals=MOST_REFUSALS - 2)[0] is AGAIN
    assert after(429, TOLD, refusals=MOST_REFUSALS - 1) == (LATER, 2, 2)
    terms, put = Terms("vendor"), Call("PUT", failures=MOST_FAILURES - 1)
    for fields in ({}, TOLD):
        assert decide(put, Answer(502, fields), terms, 0.5).act is RETURN
    assert decide_failure(put, Failure.UNSENT, terms, 0.5).act is RETURN


def test_what_would_take_too_long_is_not_waited_for() -> None:
    assert after(429, {"retry-after": "3600"}) == (LATER, 3600, 3600)
    assert after(429, TOLD, waited=3) == (AGAIN, 2, 2)
    assert after(429, TOLD, waited=3.1) == (LATER, 2, 2)
    assert after(503, {"retry-after": "90"}, method="GET") == (LATER, 90, 90)
    # Nobody told how long a fault lasts, so there is nothing to come back for.
    assert after(502, {}, method="GET", waited=4.9) == (RETURN, 0, 0)


def test_without_waiting_at_all() -> None:
    terms = Terms("vendor", max_wait=0)
    assert decide(Call("GET"), Answer(429, {"retry-after": "90"}), terms, 0.5)[:3] == (
        LATER,
        90,
        90,
    )
    assert decide(Call("GET"), Answer(429), terms, 0.5).act is LATER
    assert decide(Call("GET"), Answer(502), terms, 0.5).act is RETURN
    assert decide_failure(Call("GET"), Failure.UNSENT, terms, 0.5).act is RETURN


def test_what_cannot_be_sent_again() -> None:
    assert after(429, TOLD, replays=False) == (LATER, 2, 2)
    assert after(429, {}, replays=False) == (LATER, 0.35, 0.35)
    assert after(502, {"retry-after": "2"}, method="PUT", replays=False) == (RETURN, 0, 2)


@pytest.mark.parametrize("name", ["x-should-retry", "stripe-should-retry"])
@pytest.mark.parametrize("status", [429, 503])
def test_who_says_that_it_is_in_vain_is_believed(name: str, status: int) -> None:
    assert after(status, {name: "false"}, method="GET") == (RETURN, 0, 0)
    assert after(status, {name: "false", **TOLD}, method="GET") == (RETURN, 0, 2)
    assert after(status, {name: "true", **TOLD}, method="GET") == (AGAIN, 2, 2)


def test_a_problem_that_says_that_it_is_in_vain() -> None:
    verdict = decide(Call("GET"), Answer(429, {}, is_final=True), TERMS, 0.5)
    assert verdict[:3] == (RETURN, 0, 0)


UNUSABLE = ["0", "", "1m0s?", "nan", "inf", "-5", "Mon, 99 Foo", "9" * 400, "1e3", "٣"]
UNUSABLE += ["Sun, 06 Nov 1994 08:49:37 GMT", "Fri, 31 Dec 99999 23:59:59 GMT"]


@pytest.mark.parametrize("text", UNUSABLE)
def test_where_no_wait_is_told_that_can_be_used(text: str) -> None:
    """Between the floor and more each time: never at once, and never without end."""
    for refusals, most in enumerate([0.5, 1.0, 2.0, 4.0]):
        for draw in (0.0, 0.5, 1.0):
            answer = Answer(429, {"retry-after": text})
            call = Call("POST", refusals=refusals)
            wait = decide(call, answer, Terms("vendor", max_wait=60), draw).wait
            assert wait == pytest.approx(0.1 + draw * most)


def test_a_backoff_has_a_cap_and_a_told_wait_has_none() -> None:
    assert backoff(100, TERMS, 1.0) == 30.1
    assert after(429, {"retry-after": "86400000"})[1:] == (86400000, 86400000)


def test_the_floor_is_the_time_of_one_unit() -> None:
    assert floor_of(Terms("vendor")) == 0.1
    assert floor_of(Terms("vendor", (pace(100, 1),))) == 0.1
    assert floor_of(Terms("vendor", (pace(1, 2),))) == 2
    # The faster one decides where there are two, since the day's is not what was hit a moment ago.
    assert floor_of(Terms("vendor", (pace(10, 1), pace(100, 86400)))) == 0.1
    assert floor_of(Terms("vendor", (pace(1000, 30 * 86400),))) == 30
    assert floor_of(Terms("vendor", (pace(0, 1),))) == 0.1


def test_less_than_the_floor_is_waited_out_as_the_floor() -> None:
    assert after(429, {"retry-after-ms": "1"}) == (AGAIN, 0.1, 0.1)


@pytest.mark.parametrize(
    ("fields", "by", "odd"),
    [
        (TOLD, "429, Retry-After: 2", ""),
        ({"retry-after": "0"}, "429, Retry-After: 0", ""),
        ({}, "429", ""),
        ({"retry-after": "soon"}, "429, Retry-After: soon", "Retry-After: soon"),
        (
            {"retry-after": str(int(ABSURD) + 1)},
            "429, Retry-After: 2764801",
            "Retry-After: 2764801",
        ),
    ],
)
def test_what_people_are_told(fields: dict[str, str], by: str, odd: str) -> None:
    verdict = decide(Call("GET"), Answer(429, fields), TERMS, 0.5)
    assert (verdict.by, verdict.odd) == (by, odd)


calls = st.builds(
    Call,
    method=st.sampled_from(METHODS),
    keyed=st.booleans(),
    replays=st.booleans(),
    refusals=st.integers(0, 6),
    failures=st.integers(0, 4),
    waited=st.floats(0, 10),
)
draws = st.floats(0, 1)
statuses = st.sampled_from([200, 403, 429, 500, 502, 503, 504, 529])
waits = st.floats(0.001, 1e8).map(lambda seconds: round(seconds, 3))


@given(calls, statuses, waits, waits, draws)
def test_who_is_told_more_waits_longer(
    call: Call, status: int, one: float, other: float, draw: float
) -> None:
    told = sorted([one, other])
    answers = [Answer(status, {"retry-after": f"{seconds:.3f}"}) for seconds in told]
    less, more = (decide(call, answer, TERMS, draw) for answer in answers)
    assert less.block <= more.block
    for verdict, seconds in zip((less, more), told, strict=True):
        if verdict.act is not RETURN:
            assert verdict.wait >= seconds
            assert verdict.block >= seconds
        if verdict.act is AGAIN:
            assert verdict.wait <= call.left(TERMS)
    # Nobody is sent again for having been told to wait longer.
    assert (less.act, more.act) != (LATER, AGAIN)


NAMES = [
    "retry-after",
    "retry-after-ms",
    "x-should-retry",
    "ratelimit",
    "x-ratelimit-reset",
    "date",
]


@given(
    calls,
    st.integers(100, 999),
    st.dictionaries(st.sampled_from(NAMES), st.text(max_size=40)),
    draws,
)
def test_nothing_raises_and_nothing_is_repeated_at_once(
    call: Call, status: int, fields: dict[str, str], draw: float
) -> None:
    verdict = decide(call, Answer(status, fields), TERMS, draw)
    assert 0 <= verdict.block < float("inf")
    if verdict.act is not RETURN:
        assert verdict.wait >= 0.1
