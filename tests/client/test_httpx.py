"""httpx and httpx2, sync and async, through the gate. Waiting takes no time here."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import ssl
import threading
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from ratelimits.client import RetryLater
from ratelimits.client.api import Api
from ratelimits.client.httpx import SyncExchange
from ratelimits.client.policy import Failure
from ratelimits.pacing.terms import Terms
from tests.client.clients import Caller
from tests.client.turnstile import Turnstile
from tests.client.vendor import Reply, Vendor
from tests.servers import free_port

REFUSED = Reply(429, {"Retry-After": "2"}, b"not now")
BROKEN = Reply(503, {}, b"not well")
IN_VAIN = json.dumps({"title": "Never", "retryable": False}).encode()
PROBLEM = {"Content-Type": "application/problem+json", "Retry-After": "2"}
COMPRESSED = gzip.compress(IN_VAIN)


def test_a_good_answer_is_just_that(caller: Caller, vendor: Vendor, gate: Turnstile) -> None:
    vendor.will(Reply(headers={"RateLimit": '"x";r=3;t=9'}))
    response = caller.call("GET", vendor.url)
    assert (response.text, response.elapsed.total_seconds() > 0) == ("well", True)
    assert (gate.entered, gate.slept, gate.blocks) == ([0], [], [])
    assert gate.observed[0][0].remaining == 3


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_refused_call_waits_with_everybody_and_goes_again(
    caller: Caller, vendor: Vendor, gate: Turnstile, method: str
) -> None:
    vendor.will(REFUSED, Reply(429, {"Retry-After": "2"}, (b"not", b"now")))
    response = caller.call(method, vendor.url, content=b"body" if method == "POST" else b"")
    assert response.status_code == 200
    assert gate.entered == [0, 2, 4]
    assert [block[1:] for block in gate.blocks] == [(2, "429, Retry-After: 2", True)] * 2
    # The refused answers were read, so that their connection goes on.
    assert len(vendor.connections) == 1


def test_the_connection_is_free_while_it_waits(
    caller: Caller, vendor: Vendor, gate: Turnstile
) -> None:
    vendor.will(REFUSED, Reply())

    async def do(client: Any) -> Any:
        def another() -> Any:
            gate.while_waiting, gate.until = None, 0
            coroutine = client.request("GET", f"{vendor.url}/other")
            return coroutine if caller.is_async else pytest.fail("needs a thread")

        def other() -> None:
            gate.while_waiting, gate.until = None, 0
            assert client.client.get(f"{vendor.url}/other").text == "well"

        gate.while_waiting = another if caller.is_async else other
        return await client.request("POST", vendor.url, content=b"mine")

    assert caller.run(do).text == "well"
    assert vendor.bodies == [b"mine", b"", b"mine"]


def test_a_large_refusal_is_not_read(caller: Caller, vendor: Vendor) -> None:
    vendor.will(
        Reply(429, {"Retry-After": "1"}, b"x" * 10_000_000),
        Reply(429, {"Retry-After": "1"}, (b"x" * 1000,) * 10_000),
    )
    assert caller.call("GET", vendor.url).text == "well"
    assert len(vendor.connections) == 3


def test_a_wait_that_is_too_long_is_raised_with_the_answer(
    caller: Caller, vendor: Vendor, gate: Turnstile
) -> None:
    vendor.will(Reply(429, {"Retry-After": "3600"}, b'{"error": "slow down"}'))
    with pytest.raises(RetryLater) as caught:
        caller.call("GET", vendor.url)
    assert (caught.value.delay, caught.value.reason) == (3600, "vendor: 429, Retry-After: 3600")
    assert caught.value.response.json() == {"error": "slow down"}
    with pytest.raises(caller.library.HTTPStatusError):
        caught.value.response.raise_for_status()
    assert (gate.slept, gate.until, len(vendor.received)) == ([], 3600, 1)


def test_refused_again_and_again(caller: Caller, vendor: Vendor, gate: Turnstile) -> None:
    gate.terms = Terms("vendor", max_wait=60)
    vendor.will(*[REFUSED] * 9)
    with pytest.raises(RetryLater) as caught:
        caller.call("POST", vendor.url, json={})
    assert (caught.value.delay, caught.value.response.text) == (2, "not now")
    assert (gate.entered, gate.until) == ([0, 2, 4, 6, 8], 10)


class Pipe(io.BytesIO):
    """A file that can be read once."""

    def seekable(self) -> bool:
        return False


class Upload(io.BytesIO):
    """A file of which the first bytes were read before."""

    def __init__(self, start: int) -> None:
        super().__init__(b"...contents")
        self.seek(start)


@pytest.mark.parametrize(
    "options", [{"content": b"body"}, {"content": "body"}, {"json": [1]}, {"data": {"a": "1"}}]
)
def test_bodies_in_memory_are_sent_again(
    caller: Caller, vendor: Vendor, options: dict[str, Any]
) -> None:
    vendor.will(REFUSED)
    caller.call("POST", vendor.url, **options)
    first, second = vendor.bodies
    assert first == second != b""


def test_forms_with_files_are_sent_again(caller: Caller, vendor: Vendor) -> None:
    vendor.will(REFUSED)
    files = {"one": io.BytesIO(b"first"), "two": b"second"}
    caller.call("POST", vendor.url, files=files, data={"a": "1"})
    first, second = vendor.bodies
    assert first == second
    assert b"first" in first


def test_files_are_sent_again_from_where_they_were(caller: Caller, vendor: Vendor) -> None:
    if caller.is_async:
        # Async clients do not send what is read by waiting.
        with pytest.raises(RuntimeError):
            caller.call("POST", vendor.url, content=Upload(0))
        return
    vendor.will(REFUSED, REFUSED)
    # httpx itself can't send a part of a file.
    start = 0 if caller.library is httpx else 3
    caller.call("POST", vendor.url, content=Upload(start))
    assert vendor.bodies == [b"...contents"[start:]] * 3


class AsyncUpload:
    """A file as those of aiofiles and anyio are: whatever it does is awaited."""

    def __init__(self, contents: bytes) -> None:
        self.file = io.BytesIO(contents)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self.file.read()

    def seekable(self) -> bool:
        return True

    async def seek(self, *args: int) -> int:
        return self.file.seek(*args)

    async def tell(self) -> int:
        return self.file.tell()


@pytest.mark.parametrize("is_broken", [False, True])
def test_an_async_file_is_sent_once(
    async_caller: Caller, vendor: Vendor, gate: Turnstile, is_broken: bool
) -> None:
    vendor.will(BROKEN if is_broken else REFUSED)
    if is_broken:
        response = async_caller.call("PUT", vendor.url, content=AsyncUpload(b"all"))
        assert response.status_code == 503
    else:
        with pytest.raises(RetryLater):
            async_caller.call("PUT", vendor.url, content=AsyncUpload(b"all"))
    assert (vendor.bodies, gate.slept) == ([b"all"], [])


def test_what_can_be_read_once_is_sent_once(
    caller: Caller, vendor: Vendor, gate: Turnstile
) -> None:
    bodies: list[dict[str, Any]] = [{"content": caller.parts(b"once ", b"only")}]
    bodies.append({"files": {"one": Pipe(b"contents"), "two": b"second"}})
    if not caller.is_async:
        bodies.append({"content": Pipe(b"contents")})
    for count, body in enumerate(bodies, 1):
        gate.until = 0
        vendor.will(REFUSED)
        with pytest.raises(RetryLater) as caught:
            caller.call("POST", vendor.url, **body)
        assert (caught.value.delay, caught.value.response.status_code) == (2, 429)
        assert (len(vendor.received), gate.until, gate.slept) == (count, 2, [])


def test_what_can_be_read_once_is_not_sent_again_after_a_fault(
    caller: Caller, vendor: Vendor
) -> None:
    vendor.will(BROKEN)
    response = caller.call("PUT", vendor.url, content=caller.parts(b"once ", b"only"))
    assert (response.status_code, vendor.bodies) == (503, [b"once only"])


@pytest.mark.parametrize(
    ("method", "headers", "sent"),
    [("GET", {}, 3), ("PUT", {}, 3), ("POST", {}, 1), ("POST", {"Idempotency-Key": "1"}, 3)],
)
def test_faults_are_repeated_twice_where_that_is_safe(
    caller: Caller,
    vendor: Vendor,
    gate: Turnstile,
    method: str,
    headers: dict[str, str],
    sent: int,
) -> None:
    vendor.will(*[BROKEN] * 9)
    response = caller.call(method, vendor.url, headers=headers)
    assert (response.status_code, response.text) == (503, "not well")
    assert len(vendor.received) == len(gate.entered) == sent
    assert (gate.blocks, gate.slept) == ([], [0.35, 0.6][: sent - 1])


def test_nothing_was_sent(caller: Caller, gate: Turnstile) -> None:
    with pytest.raises(caller.library.ConnectError):
        caller.call("POST", f"http://127.0.0.1:{free_port()}")
    assert len(gate.entered) == 3


@pytest.mark.parametrize(("method", "sent"), [("GET", 3), ("POST", 1)])
def test_nobody_knows_whether_it_was_processed(
    caller: Caller, vendor: Vendor, method: str, sent: int
) -> None:
    vendor.will(None, None, None)
    with pytest.raises(caller.library.RemoteProtocolError):
        caller.call(method, vendor.url)
    assert len(vendor.received) == sent


def not_trusted() -> Exception:
    error = httpx.ConnectError("")
    error.__cause__ = ssl.SSLCertVerificationError()
    return error


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (httpx.ConnectTimeout(""), Failure.UNSENT),
        (httpx.ProxyError(""), Failure.UNSENT),
        (httpx.ReadTimeout(""), Failure.UNANSWERED),
        (httpx.WriteError(""), Failure.UNANSWERED),
        (httpx.PoolTimeout(""), None),
        (httpx.UnsupportedProtocol(""), None),
        (httpx.LocalProtocolError(""), None),
        (not_trusted(), None),
        (ValueError("no"), None),
    ],
)
def test_kinds_of_failures(error: Exception, failure: Failure | None) -> None:
    assert SyncExchange(None, httpx.Request("GET", "http://x")).failure(error) is failure


FINAL = [
    Reply(429, PROBLEM, IN_VAIN),
    Reply(429, PROBLEM, (IN_VAIN[:5], IN_VAIN[5:])),
    Reply(429, PROBLEM | {"Content-Encoding": "gzip"}, COMPRESSED),
    Reply(429, PROBLEM | {"Content-Encoding": "gzip"}, (COMPRESSED[:5], COMPRESSED[5:])),
]


@pytest.mark.parametrize("reply", FINAL)
def test_a_problem_that_is_final_is_returned_at_once(
    caller: Caller, vendor: Vendor, gate: Turnstile, reply: Reply
) -> None:
    vendor.will(reply, reply)
    response = caller.call("GET", vendor.url)
    assert (response.status_code, response.content) == (429, IN_VAIN)
    assert response.elapsed.total_seconds() > 0
    gate.until = 0
    raw = caller.run(lambda client: caller.streamed(client, vendor.url, "iter_raw"))
    body = b"".join(reply.body) if isinstance(reply.body, tuple) else reply.body
    assert b"".join(raw[1]) == body
    assert (len(vendor.received), gate.until, gate.slept) == (2, 2, [])


def test_a_problem_too_large_to_look_into_is_still_whole(
    caller: Caller, vendor: Vendor, gate: Turnstile
) -> None:
    """It is repeated, unless there is another reason not to."""
    large = (IN_VAIN, *[b" " * 1000] * 100)
    fields = PROBLEM | {"X-Should-Retry": "false"}
    vendor.will(Reply(429, PROBLEM, large), Reply(429, fields, large))
    response, body = caller.run(lambda client: caller.streamed(client, vendor.url, "iter_bytes"))
    assert (response.status_code, b"".join(body)) == (429, b"".join(large))
    assert gate.slept == [2]


@pytest.mark.parametrize(
    "body", [b"{}", b"[]", b"no json", b'{"retryable": "false"}', b"", b"[" * 60_000]
)
def test_other_problems_are_repeated(caller: Caller, vendor: Vendor, body: bytes) -> None:
    vendor.will(Reply(429, PROBLEM, body))
    assert caller.call("GET", vendor.url).text == "well"


def test_a_stream_is_the_callers(caller: Caller, vendor: Vendor) -> None:
    rest = threading.Event()
    vendor.will(REFUSED, Reply(200, {}, (b"first", b"second"), rest))
    url = vendor.url

    async def do(client: Any) -> list[bytes]:
        if caller.is_async:
            async with client.stream("GET", url) as response:
                parts = response.aiter_bytes()
                found = [await anext(parts)]
                rest.set()
                return found + [part async for part in parts]
        with client.client.stream("GET", url) as response:
            parts = response.iter_bytes()
            found = [next(parts)]
            # It has arrived here before the server went on.
            rest.set()
            return found + list(parts)

    assert caller.run(do) == [b"first", b"second"]


def test_each_hop_of_a_redirect_is_a_call(caller: Caller, vendor: Vendor, gate: Turnstile) -> None:
    vendor.will(Reply(307, {"Location": "/there"}), REFUSED)
    response = caller.call("POST", vendor.url, content=b"body", follow_redirects=True)
    assert str(response.url) == f"{vendor.url}/there"
    assert gate.entered == [0, 0, 2]
    assert vendor.bodies == [b"body"] * 3


def test_what_a_request_costs(caller: Caller, vendor: Vendor, gate: Turnstile) -> None:
    get = lambda client: client.request("GET", vendor.url, headers={"X-Units": "7"})  # noqa: E731
    caller.run(get, cost=lambda request: int(request.headers["X-Units"]))
    caller.run(get, cost=3)
    assert gate.costs == [7, 3]


async def test_who_no_longer_wants_to_wait(api: Api, vendor: Vendor, gate: Turnstile) -> None:
    vendor.will(REFUSED)
    is_waiting = asyncio.Event()

    async def wait() -> None:
        gate.while_waiting = None
        is_waiting.set()
        await asyncio.Event().wait()

    gate.while_waiting = wait
    inner = httpx.AsyncHTTPTransport(limits=httpx.Limits(max_connections=1), verify=False)
    async with httpx.AsyncClient(transport=api.async_transport(inner), timeout=20) as client:
        call = asyncio.create_task(client.get(vendor.url))
        await is_waiting.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        gate.until = 0
        assert (await client.get(vendor.url)).text == "well"
    assert len(vendor.received) == 2


async def test_who_is_cancelled_while_the_others_are_told(
    api: Api, vendor: Vendor, gate: Turnstile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer would have been the caller's, who never gets to close it."""
    vendor.will(Reply(503, {"Retry-After": "2"}))
    is_told = asyncio.Event()

    async def told(*args: Any) -> None:
        is_told.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(gate, "_ablock", told)
    inner = httpx.AsyncHTTPTransport(limits=httpx.Limits(max_connections=1), verify=False)
    async with httpx.AsyncClient(transport=api.async_transport(inner), timeout=20) as client:
        call = asyncio.create_task(client.post(vendor.url))
        await is_told.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await client.post(vendor.url)).text == "well"


def test_who_is_interrupted_while_the_others_are_told(
    api: Api, vendor: Vendor, gate: Turnstile, monkeypatch: pytest.MonkeyPatch
) -> None:
    vendor.will(Reply(503, {"Retry-After": "2"}))

    def interrupted(*args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(gate, "_block", interrupted)
    inner = httpx.HTTPTransport(limits=httpx.Limits(max_connections=1), verify=False)
    with httpx.Client(transport=api.transport(inner), timeout=20) as client:
        with pytest.raises(KeyboardInterrupt):
            client.post(vendor.url)
        assert client.post(vendor.url, timeout=5).text == "well"
