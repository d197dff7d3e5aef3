from __future__ import annotations

import json
from uuid import UUID

import pytest
from django.utils.functional import lazystr

from ratelimits.limits import Decision, Outcome
from ratelimits.publishing import problems
from ratelimits.publishing.headers import headers_of
from ratelimits.publishing.problems import problem_of
from tests.decisions import decision, limit, passed, violated
from tests.test_publishing_headers import TRICKY, read


def test_problem_of_an_exceeded_quota() -> None:
    """S-29, S-30, S-31: the registered type, the real status, and what to do."""
    problem = problem_of(decision(violated(limit(), 0.6), passed(limit("daily", "1000/d"))))
    instance = problem.pop("instance")
    assert problem == {
        "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
        "title": "Quota Exceeded",
        "status": 429,
        "detail": "Limit is 100 requests per minute for this key.",
        "violated-policies": ["default"],
        "limit": 100,
        "remaining": 0,
        "reset": 1,
        "retry_after": 1,
        "cost": 1,
        "retryable": True,
    }
    uuid, _, receipt = instance.partition("?=")
    assert UUID(uuid.removeprefix("urn:uuid:")).urn == uuid
    assert receipt


def test_numbers_are_those_of_the_limit_that_decides() -> None:
    """The longest wait decides, and its t and Retry-After are those of the fields."""
    outcomes = [violated(limit("a", "10/m"), 3), violated(limit("b", "20/h"), 9.5, 2, cost=5)]
    problem = problem_of(decision(*outcomes, cost=1))
    headers = headers_of(decision(*outcomes))
    shown = ("limit", "remaining", "reset", "retry_after", "cost")
    assert [problem[name] for name in shown] == [20, 2, 10, 10, 5]
    assert problem["violated-policies"] == ["a", "b"]
    assert headers["Retry-After"] == str(problem["retry_after"])
    assert read(headers["RateLimit"])[1][1] == {"r": 2, "t": 10}


def test_instance_is_new_for_each_occurrence() -> None:
    refused = decision(violated(limit()))
    assert problem_of(refused)["instance"] != problem_of(refused)["instance"]


def test_numbers_stay_numbers_in_json() -> None:
    """RFC 9457, section 3.1: a member of the wrong type is ignored."""
    problem = json.loads(json.dumps(problem_of(decision(violated(limit())))))
    names = ("status", "limit", "remaining", "reset", "retry_after", "cost")
    assert {type(problem[name]) for name in names} == {int}
    assert problem["retryable"] is True


def test_violated_policies_are_named_as_in_the_fields() -> None:
    """S-13, S-29 and case 57: only violated ones, as the fields write and number them."""
    outcomes = [
        passed(limit("a")),
        violated(limit(TRICKY)),
        violated(limit("A")),
        violated(limit("trial", mode="shadow")),
    ]
    names = [name for name, _ in read(headers_of(decision(*outcomes))["RateLimit"])]
    assert problem_of(decision(*outcomes))["violated-policies"] == names[1:]


def test_a_hidden_violated_limit_is_not_mistaken_for_a_listed_one() -> None:
    outcomes = [violated(limit("api", per="everyone")), passed(limit("api"))]
    assert read(headers_of(decision(*outcomes))["RateLimit"])[0][0] == "api"
    assert problem_of(decision(*outcomes))["violated-policies"] == ["api-2"]


@pytest.mark.parametrize(
    ("outcome", "detail"),
    [
        (violated(limit(rate="10/5m")), "Limit is 10 requests per 5 minutes for this key."),
        (
            violated(limit(rate="5/m", per="address")),
            "Limit is 5 requests per minute for this address.",
        ),
        (
            violated(limit(rate="10/m", burst=4), None, remaining=4, cost=7),
            "This request costs 7, but the limit of 10 requests per minute allows no more "
            "than 4 units at once.",
        ),
        (
            violated(limit(rate="1/d"), None, remaining=1, cost=2),
            "This request costs 2, but the limit of 1 request per day allows no more "
            "than 1 unit at once.",
        ),
        (violated(limit(rate="0/m"), None), "No such requests are allowed for this key."),
        (
            violated(limit(rate="0/m", per="address"), None),
            "No such requests are allowed for this address.",
        ),
    ],
)
def test_detail_says_what_happened(outcome: Outcome, detail: str) -> None:
    """S-31."""
    assert problem_of(decision(outcome))["detail"] == detail


def test_a_request_that_can_never_pass_is_not_retryable() -> None:
    problem = problem_of(decision(violated(limit(), None, remaining=100, cost=101)))
    assert problem["status"] == 429
    assert problem["retryable"] is False
    assert problem["retry_after"] is None
    assert problem["remaining"] == 100


@pytest.mark.parametrize(
    ("refused", "violated_policies", "cost"),
    [
        (decision(violated(limit("breaker", per="everyone"), 4, cost=3)), ["breaker"], 3),
        (decision(cost=2, unavailable=True), [], 2),
        (decision(passed(limit()), cost=2, unavailable=True), [], 2),
    ],
)
def test_a_503_tells_no_capacity(refused: Decision, violated_policies: list[str], cost) -> None:
    """S-22, S-29, S-30."""
    problem = problem_of(refused)
    uri = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
    assert problem["type"] == uri
    assert problem["title"] == "Temporary Reduced Capacity"
    assert problem["status"] == refused.status == 503
    assert problem["violated-policies"] == violated_policies
    assert problem["retry_after"] == refused.retry_after
    assert problem["cost"] == cost
    assert problem["retryable"] is True
    assert not {"limit", "remaining", "reset"} & problem.keys()
    assert not any(character.isdigit() for character in problem["detail"])


def test_a_503_always_says_when_to_come_back() -> None:
    """Also while a limit of 0 closes the whole service, until somebody edits it."""
    for rate, wait in (("0/s", None), ("9/s", 1)):
        problem = problem_of(decision(violated(limit(rate=rate, per="everyone"), wait)))
        assert (problem["status"], problem["retryable"]) == (503, True)
        assert problem["retry_after"] >= 1
        assert "again" in problem["detail"]


def test_a_cost_above_the_limit_for_everyone_is_the_callers_own_affair() -> None:
    problem = problem_of(decision(violated(limit(rate="9/s", per="everyone"), None)))
    assert (problem["status"], problem["retryable"], problem["retry_after"]) == (429, False, None)
    assert "9" not in problem["detail"]
    assert "limit" not in problem


def test_own_types(settings) -> None:
    own = "https://example.com/too-many"
    settings.RATELIMITS = {"PROBLEM_TYPES": {"quota-exceeded": lazystr(own)}}
    assert json.loads(json.dumps(problem_of(decision(violated(limit())))))["type"] == own
    assert problem_of(decision(unavailable=True))["type"].endswith("#temporary-reduced-capacity")


def test_text_for_people_is_translated_and_tokens_are_not(monkeypatch) -> None:
    """RFC 9457, section 3.1.3: a title changes for localization only."""
    monkeypatch.setattr(problems, "_", lambda text: f"({text})")
    problem = problem_of(decision(violated(limit())))
    assert problem["title"] == "(Quota Exceeded)"
    assert problem["detail"] == "(Limit is 100 requests per minute for this key.)"
    assert problem["violated-policies"] == ["default"]
    assert "(" not in problem["type"]


def test_reset_is_seconds_from_now() -> None:
    """S-33: and so is what is sent as Retry-After."""
    problem = problem_of(decision(violated(limit(), 61)))
    assert (problem["reset"], problem["retry_after"]) == (61, 61)
