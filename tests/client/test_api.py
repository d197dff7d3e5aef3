"""What upstream() gives, for clients that are not ours: slots, and what they were told."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import requests

from ratelimits.client import Api, RetryLater, upstream
from ratelimits.pacing.terms import Terms
from tests.client.turnstile import Turnstile

ROOT = Path(__file__).parent.parent.parent


class SDKError(Exception):
    """As those of the vendors' libraries are: with what was answered, or a response that has it."""

    def __init__(self, **held: Any) -> None:
        super().__init__()
        vars(self).update(held)


class NoResponseError(Exception):
    """As some are whose call got no response."""

    @property
    def response(self) -> Any:
        raise RuntimeError("There is none.")


def test_importing_it_needs_neither_models_nor_libraries() -> None:
    code = (
        "import sys; from ratelimits.client import upstream, RetryLater\n"
        "unwanted = {'requests', 'httpx', 'httpx2', 'ratelimits.models', 'django.db.models'}\n"
        "unwanted &= set(sys.modules)\n"
        "sys.exit(f'imported {unwanted}' if unwanted else 0)"
    )
    finished = subprocess.run(
        [sys.executable, "-E", "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr


def test_the_credential_is_nowhere() -> None:
    api = upstream("vendor", credential="sk-secret", on_behalf_of="acme")
    assert repr(api) == "<Api 'vendor'>"
    values = [repr(getattr(api, name)) for name in api.__slots__]
    with api.session() as session:
        values += [repr(session.adapters["https://"].__getstate__())]
    assert not [value for value in values if "sk-secret" in value]
    assert not hasattr(api, "__dict__")


@pytest.mark.parametrize("wrong", [(None,), (b"sk-secret",), ("key", 7), ("key", b"acme")])
def test_what_is_no_credential_and_no_customer(wrong: Any) -> None:
    """As soon as it is called, not with the first request."""
    with pytest.raises(TypeError, match="string") as caught:
        upstream("vendor", *wrong)
    # Not what it is instead, which may be a secret.
    assert "sk-secret" not in str(caught.value)


def test_a_wait_that_nobody_lives_to_see() -> None:
    later = RetryLater(1e18)
    assert (later.until.year, later.until.utcoffset()) == (9999, timedelta(0))


def test_credentials_have_gates_of_their_own() -> None:
    one, same, other = (upstream("vendor", key).gate() for key in ("a", "a", "b"))
    assert one.keys == same.keys != other.keys
    assert upstream("other", "a").gate().keys.book != one.keys.book
    for_acme = upstream("vendor", "a", on_behalf_of="acme").gate()
    assert for_acme.keys.book == one.keys.book
    assert for_acme.keys.share != one.keys.share


def test_a_slot(api: Api, gate: Turnstile) -> None:
    gate.until = 2
    with api.slot(cost=3):
        assert gate.now == 2
    assert (gate.costs, gate.blocks) == ([3], [])
    gate.until = 100
    with pytest.raises(RetryLater), api.slot():
        pytest.fail("it entered")


async def test_an_async_slot(api: Api, gate: Turnstile) -> None:
    gate.until = 2
    async with api.slot():
        assert gate.now == 2
    with pytest.raises(SDKError):
        async with api.slot():
            raise SDKError(headers={"Retry-After": "7"}, status=429)
    assert (gate.costs, gate.until) == ([1, 1], 9)


def refused(library: Any) -> Exception:
    """The error that a client raises for a refusal."""
    if library is requests:
        response = requests.Response()
        response.status_code, response.headers["Retry-After"] = 429, "7"
        return requests.HTTPError(response=response)
    request = library.Request("GET", "http://x")
    answer = library.Response(429, headers={"Retry-After": "7"}, request=request)
    error: Exception = library.HTTPStatusError("", request=request, response=answer)
    return error


ERRORS = [
    refused(requests),
    refused(httpx),
    SDKError(response=SimpleNamespace(status_code=429, headers={"retry-after": "7"})),
    SDKError(http_status=429, headers={"Retry-After": "7"}),
    SDKError(status=429, headers=[("Retry-After", "7")], response=None),
]


@pytest.mark.parametrize("error", ERRORS)
def test_what_an_error_in_a_slot_says_is_for_everybody(
    api: Api, gate: Turnstile, error: Exception
) -> None:
    with pytest.raises(type(error)) as caught, api.slot():
        raise error
    assert caught.value is error
    assert [block[1:] for block in gate.blocks] == [(7, "429, Retry-After: 7", True)]


@pytest.mark.parametrize(
    "error",
    [
        ValueError("a mistake"),
        RetryLater(7),
        SDKError(status="429", headers={"Retry-After": "7"}),
        SDKError(status=429),
        SDKError(status=404, headers={"Retry-After": "7"}),
        SDKError(status=502, headers={}),
        NoResponseError(),
        KeyboardInterrupt(),
    ],
)
def test_other_errors_in_a_slot_are_nobodys(
    api: Api, gate: Turnstile, error: BaseException
) -> None:
    with pytest.raises(type(error)), api.slot():
        raise error
    assert gate.blocks == []


def test_what_a_session_was_told_is_not_told_again(api: Api, gate: Turnstile) -> None:
    error = RetryLater(7)
    error.response = SimpleNamespace(status_code=429, headers={"Retry-After": "7"})
    with pytest.raises(RetryLater), api.slot():
        raise error
    assert gate.blocks == []


def test_told(api: Api, gate: Turnstile) -> None:
    assert api.told({"Retry-After": "7"}) == 7
    assert api.told([("retry-after", "3")], status=503) == 3
    assert [block[1:] for block in gate.blocks] == [
        (7, "429, Retry-After: 7", True),
        (3, "503, Retry-After: 3", False),
    ]
    assert gate.seen == ["retry-after: 7", "retry-after: 3"]
    assert gate.until == 7


async def test_told_async(api: Api, gate: Turnstile) -> None:
    assert await api.atold({"Retry-After": "7"}) == gate.until == 7


def test_told_nothing_that_can_be_used(api: Api, gate: Turnstile) -> None:
    assert api.told({}) == gate.until == 0.35
    # No limit refused these.
    assert [api.told({}, status=status) for status in (200, 403, 500, 503)] == [0] * 4


def test_told_by_a_status_of_the_upstreams_own(api: Api, gate: Turnstile) -> None:
    gate.terms = Terms("vendor", statuses=frozenset({403}))
    assert api.told({"Retry-After": "7"}, status=403) == 7
