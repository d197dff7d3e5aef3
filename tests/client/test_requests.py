"""requests, through the gate, against a real server. Waiting takes no time here."""

from __future__ import annotations

import gzip
import json
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests
from requests.exceptions import SSLError

from ratelimits.client import RetryLater
from ratelimits.client.api import Api
from ratelimits.client.policy import Failure
from ratelimits.client.requests import Exchange, RateLimitAdapter
from ratelimits.pacing.terms import Terms
from tests.client.turnstile import Turnstile
from tests.client.vendor import Reply, Vendor
from tests.servers import free_port

REFUSED = Reply(429, {"Retry-After": "2"}, b"not now")
BROKEN = Reply(503, {}, b"not well")
IN_VAIN = json.dumps({"title": "Never", "retryable": False}).encode()
PROBLEM = {"Content-Type": "application/problem+json; charset=utf-8", "Retry-After": "2"}
TIMEOUT = 20


def test_a_good_answer_is_just_that(
    session: requests.Session, vendor: Vendor, gate: Turnstile
) -> None:
    vendor.will(Reply(headers={"RateLimit": '"x";r=3;t=9', "X-Secret": "x"}))
    assert session.get(vendor.url, timeout=TIMEOUT).text == "well"
    assert (gate.entered, gate.slept, gate.blocks) == ([0], [], [])
    assert gate.observed[0][0].remaining == 3


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PATCH", "DELETE"])
def test_a_refused_call_waits_with_everybody_and_goes_again(
    session: requests.Session, vendor: Vendor, gate: Turnstile, method: str
) -> None:
    vendor.will(REFUSED, REFUSED)
    response = session.request(method, vendor.url, timeout=TIMEOUT)
    assert response.status_code == 200
    assert gate.entered == [0, 2, 4]
    assert [block[1:] for block in gate.blocks] == [(2, "429, Retry-After: 2", True)] * 2
    assert gate.seen == ["retry-after: 2"] * 2


def test_the_connection_is_free_while_it_waits(
    session: requests.Session, vendor: Vendor, gate: Turnstile
) -> None:
    """Of a pool of one, and it is the same one afterwards."""
    vendor.will(REFUSED, Reply())
    others: list[str] = []

    def another() -> None:
        gate.while_waiting = None
        gate.until = 0
        others.append(session.get(f"{vendor.url}/other", timeout=TIMEOUT).text)

    gate.while_waiting = another
    assert session.post(vendor.url, data=b"mine", timeout=TIMEOUT).text == "well"
    assert others == ["well"]
    assert vendor.bodies == [b"mine", b"", b"mine"]
    assert len(vendor.connections) == 1


def test_a_large_refusal_is_not_read(
    session: requests.Session, vendor: Vendor, gate: Turnstile
) -> None:
    vendor.will(Reply(429, {"Retry-After": "2"}, b"x" * 10_000_000))
    assert session.get(vendor.url, timeout=TIMEOUT).text == "well"
    assert len(vendor.connections) == 2


def test_a_wait_that_is_too_long_is_raised_with_the_answer(
    session: requests.Session, vendor: Vendor, gate: Turnstile
) -> None:
    vendor.will(Reply(429, {"Retry-After": "3600"}, b'{"error": "slow down"}'))
    with pytest.raises(RetryLater) as caught:
        session.get(vendor.url, timeout=TIMEOUT)
    assert caught.value.delay == 3600
    assert caught.value.reason == "vendor: 429, Retry-After: 3600"
    assert caught.value.response.json() == {"error": "slow down"}
    assert caught.value.response.request.url == f"{vendor.url}/"
    assert (gate.slept, gate.until, len(vendor.received)) == ([], 3600, 1)
    # The next one does not even ask.
    with pytest.raises(RetryLater):
        session.get(vendor.url, timeout=TIMEOUT)
    assert len(vendor.received) == 1


def test_it_can_be_pickled_without_the_answer(session: requests.Session, vendor: Vendor) -> None:
    vendor.will(Reply(429, {"Retry-After": "3600"}))
    with pytest.raises(RetryLater) as caught:
        session.get(vendor.url, timeout=TIMEOUT)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.delay, again.reason, again.until) == (3600, caught.value.reason, again.until)
    assert again.response is None


def test_refused_again_and_again(
    session: requests.Session, vendor: Vendor, gate: Turnstile
) -> None:
    gate.terms = Terms("vendor", max_wait=60)
    vendor.will(*[REFUSED] * 9)
    with pytest.raises(RetryLater) as caught:
        session.get(vendor.url, timeout=TIMEOUT)
    assert (caught.value.delay, caught.value.response.text) == (2, "not now")
    # Nothing is waited for after the last one, and everybody knows of it.
    assert (gate.entered, gate.until) == ([0, 2, 4, 6, 8], 10)


def test_all_waiting_together_is_not_too_long(
    session: requests.Session, vendor: Vendor, gate: Turnstile
) -> None:
    vendor.will(*[REFUSED] * 9)
    with pytest.raises(RetryLater):
        session.get(vendor.url, timeout=TIMEOUT)
    assert gate.slept == [2, 2]


def test_waiting_in_vain_at_the_gate_shows_the_answer_too(
    session: requests.Session, vendor: Vendor, gate: Turnstile
) -> None:
    """Others were told to wait for longer meanwhile, and it has waited before."""
    gate.until = 4
    vendor.will(Reply(429, {"Retry-After": "1"}), REFUSED)
    original = gate.block

    def block(seconds: float, *args: Any, **options: Any) -> Any:
        return original(seconds + 2, *args, **options)

    gate.block = block  # type: ignore[method-assign]
    with pytest.raises(RetryLater) as caught:
        session.get(vendor.url, timeout=TIMEOUT)
    assert caught.value.response.status_code == 429
    assert gate.slept == [4]


def test_a_failing_gate_does_not_keep_the_connection(
    session: requests.Session, vendor: Vendor, gate: Turnstile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer would have been the caller's, who never gets to close it."""

    def interrupted(*args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(gate, "_block", interrupted)
    vendor.will(Reply(503, {"Retry-After": "2"}, (b"not", b"well")))
    with pytest.raises(KeyboardInterrupt):
        session.post(vendor.url, stream=True, timeout=TIMEOUT)
    adapter = session.get_adapter(vendor.url)
    assert isinstance(adapter, RateLimitAdapter)
    request = requests.Request("GET", vendor.url).prepare()
    connections: Any = adapter.get_connection_with_tls_context(request, verify=True)
    assert connections.pool.full()


@pytest.mark.parametrize(
    ("method", "headers", "sent"),
    [("GET", {}, 3), ("PUT", {}, 3), ("POST", {}, 1), ("POST", {"Idempotency-Key": "1"}, 3)],
)
def test_faults_are_repeated_twice_where_that_is_safe(
    session: requests.Session,
    vendor: Vendor,
    gate: Turnstile,
    method: str,
    headers: dict[str, str],
    sent: int,
) -> None:
    vendor.will(*[BROKEN] * 9)
    response = session.request(method, vendor.url, headers=headers, timeout=TIMEOUT)
    assert (response.status_code, response.text) == (503, "not well")
    assert len(vendor.received) == len(gate.entered) == sent
    # Alone, since nobody said that it concerns the others.
    assert (gate.blocks, gate.slept) == ([], [0.35, 0.6][: sent - 1])


def test_all_waiting_after_faults_is_not_too_long(
    session: requests.Session, vendor: Vendor, gate: Turnstile
) -> None:
    gate.terms = Terms("vendor", max_wait=0.9)
    vendor.will(*[BROKEN] * 9)
    assert session.get(vendor.url, timeout=TIMEOUT).status_code == 503
    assert gate.slept == [0.35]


def test_a_told_wait_of_a_fault_is_for_everybody(
    session: requests.Session, vendor: Vendor, gate: Turnstile
) -> None:
    vendor.will(Reply(503, {"Retry-After": "3"}))
    assert session.post(vendor.url, timeout=TIMEOUT).status_code == 503
    assert [block[1:] for block in gate.blocks] == [(3, "503, Retry-After: 3", False)]
    vendor.will(Reply(503, {"Retry-After": "1"}))
    assert session.get(vendor.url, timeout=TIMEOUT).status_code == 200
    assert gate.entered == [0, 3, 4]


def test_repeating_after_faults_has_an_end(
    session: requests.Session, vendor: Vendor, gate: Turnstile
) -> None:
    vendor.will(*[BROKEN] * 60)
    for _ in range(20):
        session.get(vendor.url, timeout=TIMEOUT)
    # Each once, and twenty repetitions by all of them.
    assert len(vendor.received) == 40
    vendor.replies.clear()
    for _ in range(5):
        session.get(vendor.url, timeout=TIMEOUT)
    vendor.will(BROKEN)
    assert session.get(vendor.url, timeout=TIMEOUT).status_code == 200


def test_nothing_was_sent(session: requests.Session, gate: Turnstile) -> None:
    with pytest.raises(requests.ConnectionError):
        session.post(f"http://127.0.0.1:{free_port()}", timeout=TIMEOUT)
    assert len(gate.entered) == 3


def test_a_proxy_of_the_environment_is_used(
    api: Api, gate: Turnstile, vendor: Vendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This server answers as a proxy too."""
    monkeypatch.setenv("HTTP_PROXY", vendor.url)
    with api.session() as session:
        assert session.get("http://api.example/proxied", timeout=TIMEOUT).text == "well"
    assert len(gate.entered) == 1
    assert [received.path for received in vendor.received] == ["http://api.example/proxied"]


def test_nothing_was_sent_beyond_the_proxy(session: requests.Session, gate: Turnstile) -> None:
    proxies = {"http": f"http://127.0.0.1:{free_port()}"}
    with pytest.raises(requests.exceptions.ProxyError):
        session.post("http://api.example", proxies=proxies, timeout=TIMEOUT)
    assert len(gate.entered) == 3


@pytest.mark.parametrize(("method", "sent"), [("GET", 3), ("POST", 1)])
def test_nobody_knows_whether_it_was_processed(
    session: requests.Session, vendor: Vendor, method: str, sent: int
) -> None:
    vendor.will(None, None, None)
    with pytest.raises(requests.ConnectionError):
        session.request(method, vendor.url, timeout=TIMEOUT)
    assert len(vendor.received) == sent


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (requests.ConnectTimeout(), Failure.UNSENT),
        (requests.ReadTimeout(), Failure.UNANSWERED),
        (requests.ConnectionError(), Failure.UNANSWERED),
        (SSLError(), None),
        (requests.exceptions.InvalidURL(), None),
        (ValueError("no"), None),
    ],
)
def test_kinds_of_failures(error: Exception, failure: Failure | None) -> None:
    request = requests.Request("GET", "http://x").prepare()
    assert Exchange(requests.Response, request, False).failure(error) is failure


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize(
    ("headers", "body"),
    [
        (PROBLEM, IN_VAIN),
        (PROBLEM | {"Content-Encoding": "gzip"}, gzip.compress(IN_VAIN)),
    ],
    # What is compressed holds the time.
    ids=["plain", "gzip"],
)
def test_a_problem_that_is_final_is_returned_at_once(
    session: requests.Session,
    vendor: Vendor,
    gate: Turnstile,
    headers: dict[str, str],
    body: bytes,
    is_stream: bool,
) -> None:
    vendor.will(Reply(429, headers, body))
    response = session.get(vendor.url, stream=is_stream, timeout=TIMEOUT)
    assert b"".join(response.iter_content(5)) == IN_VAIN
    assert (response.status_code, len(vendor.received)) == (429, 1)
    # What it told is for the others.
    assert (gate.until, gate.slept) == (2, [])


def test_a_problem_in_parts(session: requests.Session, vendor: Vendor) -> None:
    vendor.will(Reply(429, PROBLEM, (IN_VAIN[:5], IN_VAIN[5:])))
    assert session.get(vendor.url, timeout=TIMEOUT).json()["retryable"] is False
    # Whoever reads it as it comes gets it as it comes: nobody knows whether it has an end.
    vendor.will(Reply(429, PROBLEM, (IN_VAIN[:5], IN_VAIN[5:])))
    assert session.get(vendor.url, stream=True, timeout=TIMEOUT).text == "well"


@pytest.mark.parametrize(
    "body", [b"{}", b"[]", b"no json", b'{"retryable": "false"}', b"", b"[" * 60_000]
)
def test_other_problems_are_repeated(
    session: requests.Session, vendor: Vendor, body: bytes
) -> None:
    vendor.will(Reply(429, PROBLEM, body))
    assert session.get(vendor.url, timeout=TIMEOUT).text == "well"


def test_only_problems_are_looked_into(session: requests.Session, vendor: Vendor) -> None:
    vendor.will(Reply(429, PROBLEM | {"Content-Type": "application/json"}, IN_VAIN))
    assert session.get(vendor.url, timeout=TIMEOUT).text == "well"


def test_a_stream_is_the_callers(session: requests.Session, vendor: Vendor) -> None:
    rest = threading.Event()
    vendor.will(REFUSED, Reply(200, {}, (b"first", b"second"), rest))
    with session.get(vendor.url, stream=True, timeout=TIMEOUT) as response:
        parts = response.iter_content(None)
        assert next(parts) == b"first"
        # It has arrived here before the server went on.
        rest.set()
        assert b"".join(parts) == b"second"


def test_prepared_requests(session: requests.Session, vendor: Vendor, gate: Turnstile) -> None:
    vendor.will(REFUSED)
    request = session.prepare_request(requests.Request("POST", vendor.url, json={"a": 1}))
    assert session.send(request, timeout=TIMEOUT).status_code == 200
    assert vendor.bodies == [b'{"a": 1}'] * 2


def test_what_a_request_costs(api: Api, vendor: Vendor, gate: Turnstile) -> None:
    def units(request: requests.PreparedRequest) -> int:
        return int(request.headers["X-Units"])

    with api.session(cost=units) as session:
        session.get(vendor.url, headers={"X-Units": "7"}, timeout=TIMEOUT)
    with api.session(cost=3) as session:
        session.get(vendor.url, timeout=TIMEOUT)
    assert gate.costs == [7, 3]


def test_threads_share_a_session(api: Api, vendor: Vendor, gate: Turnstile) -> None:
    vendor.will(*[Reply(429, {"Retry-After": "0.5"})] * 4)

    def call(number: int) -> bytes:
        url = f"{vendor.url}/{number}"
        return shared.post(url, data=str(number), timeout=TIMEOUT).content

    with api.session() as shared, ThreadPoolExecutor(8) as threads:
        assert set(threads.map(call, range(24))) == {b"well"}
    sent = [(request.path, request.body) for request in vendor.received]
    assert len(sent) == 28
    assert set(sent) == {(f"/{number}", str(number).encode()) for number in range(24)}


def test_a_session_can_be_pickled(session: requests.Session, vendor: Vendor) -> None:
    again = pickle.loads(pickle.dumps(session))
    vendor.will(REFUSED)
    assert again.get(vendor.url, timeout=TIMEOUT).text == "well"
    again.close()


def test_a_header_that_nobody_can_read_is_logged_once(
    session: requests.Session, vendor: Vendor, caplog: pytest.LogCaptureFixture
) -> None:
    vendor.will(Reply(429, {"Retry-After": "soon"}), Reply(429, {"Retry-After": "later"}))
    assert session.get(vendor.url, timeout=TIMEOUT).text == "well"
    assert [record.getMessage() for record in caplog.records if "upstream" in record.msg] == [
        "The upstream 'vendor' answered 'Retry-After: soon': no time that anybody means."
    ]
