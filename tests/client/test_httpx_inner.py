"""What is inside the transports of httpx: another one, with or without a proxy."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from ratelimits.client.api import Api
from ratelimits.client.inner import proxy_for
from tests.client.clients import Caller
from tests.client.turnstile import Turnstile
from tests.client.vendor import Reply, Vendor
from tests.servers import free_port

REFUSED = Reply(429, {"Retry-After": "2"}, b"not now")
PROBLEM = {"Content-Type": "application/problem+json", "Retry-After": "2"}


def test_without_an_inner_transport_it_is_that_of_the_clients_library(
    caller: Caller, vendor: Vendor
) -> None:
    vendor.will(REFUSED)
    assert caller.run(lambda client: client.request("GET", vendor.url), inner=None).text == "well"
    assert len(vendor.connections) == 1


def test_a_proxy_of_the_environment_is_used(
    caller: Caller, vendor: Vendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that has a transport leaves it to that. This server answers as a proxy too."""
    monkeypatch.setenv("HTTP_PROXY", vendor.url)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    vendor.will(REFUSED)

    async def both(client: Any) -> Any:
        direct = await client.request("GET", f"{vendor.url}/direct")
        proxied = await client.request("GET", "http://api.example/proxied")
        return direct.text, proxied.text

    assert caller.run(both, inner=None) == ("well", "well")
    paths = [received.path for received in vendor.received]
    assert paths == ["/direct", "/direct", "http://api.example/proxied"]


@pytest.mark.parametrize(
    ("url", "proxies", "proxy"),
    [
        ("https://api.example/x", {"https": "http://p:1", "http": "http://q:2"}, "http://p:1"),
        ("http://api.example/x", {"https": "http://p:1"}, None),
        ("http://api.example/x", {"all": "socks5://p:1"}, "socks5://p:1"),
        ("http://api.example/x", {"http": "p:1"}, "http://p:1"),
        ("http://near.example/x", {"http": "http://p:1"}, None),
        ("http://api.example:8080/x", {"http": "http://p:1"}, None),
        ("http://api.example/x", {}, None),
    ],
)
def test_which_proxy(
    url: str, proxies: dict[str, str], proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "near.example,api.example:8080")
    assert proxy_for(httpx.URL(url), proxies) == proxy


def test_a_transport_that_was_given_knows_its_own_way(
    api: Api, vendor: Vendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    with httpx.Client(transport=api.transport(httpx.HTTPTransport())) as client:
        assert client.get(vendor.url).text == "well"
    proxied = api.transport(httpx.HTTPTransport(proxy=vendor.url))
    with httpx.Client(transport=proxied) as client:
        assert client.get("http://api.example").text == "well"
    assert vendor.received[-1].path == "http://api.example/"


def test_closing_closes_what_is_inside(api: Api) -> None:
    class Inner(httpx.BaseTransport):
        is_closed = False

        def close(self) -> None:
            self.is_closed = True

    inner, other = Inner(), Inner()
    with httpx.Client(transport=api.transport(inner)):
        pass
    httpx.Client(transport=api.transport(other)).close()
    assert inner.is_closed
    assert other.is_closed


async def test_closing_closes_what_is_inside_async(api: Api) -> None:
    class Inner(httpx.AsyncBaseTransport):
        is_closed = False

        async def aclose(self) -> None:
            self.is_closed = True

    inner = Inner()
    await api.async_transport(inner).aclose()
    assert inner.is_closed


def test_transports_that_answer_from_memory(api: Api, gate: Turnstile) -> None:
    answers = [httpx.Response(429, headers=PROBLEM, json={}), httpx.Response(200, text="well")]
    inner = httpx.MockTransport(lambda request: answers.pop(0))
    with httpx.Client(transport=api.transport(inner)) as client:
        assert client.get("http://api.example").text == "well"
    assert gate.slept == [2]
