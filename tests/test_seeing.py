"""How a request is seen, for those who set up proxies."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import RequestFactory

from ratelimits.addresses import address_of
from ratelimits.seeing import Hop, seen


def request(peer: str = "10.0.0.2", forwarded: str = "", **headers: str) -> Any:
    meta: dict[str, Any] = {"REMOTE_ADDR": peer, **headers}
    if forwarded:
        meta["HTTP_X_FORWARDED_FOR"] = forwarded
    return RequestFactory().get("/", **meta)


@pytest.mark.parametrize(
    ("trusted", "peer", "header", "forwarded", "roles"),
    [
        (0, "192.0.2.1", "", "absent", "b"),
        (0, "8.8.8.8", "192.0.2.7", "ignored", "cb"),
        (0, "10.0.0.2", "192.0.2.7", "unset", "cb"),
        (0, "", "192.0.2.7", "unset", "cb"),
        (1, "10.0.0.2", "1.1.1.1, 192.0.2.7", "believed", "cbp"),
        (2, "10.0.0.2", "1.1.1.1, 192.0.2.7", "believed", "bpp"),
        (3, "10.0.0.2", "192.0.2.7", "short", "bp"),
        (1, "10.0.0.2", "", "absent", "b"),
    ],
)
def test_the_way(
    settings: Any, trusted: int, peer: str, header: str, forwarded: str, roles: str
) -> None:
    settings.RATELIMITS = {"TRUSTED_PROXIES": trusted}
    found = seen(request(peer, header))
    assert (found.forwarded, "".join(hop.role[0] for hop in found.hops)) == (forwarded, roles)
    assert found.address == address_of(request(peer, header))
    # What is told to be believed is what is counted by.
    believed = next(hop for hop in found.hops if hop.role == "believed")
    assert found.address == believed.text


def test_what_is_long_is_cut(settings: Any) -> None:
    settings.RATELIMITS = {"TRUSTED_PROXIES": 1}
    found = seen(request("10.0.0.2", ",".join(["x" * 1000] * 50)))
    assert len(found.hops) == 11
    assert found.left_out == 40
    assert max(len(hop.text) for hop in found.hops) == 64
    assert found.address == ""


def test_a_prefix_of_ipv6() -> None:
    found = seen(request("2001:db8:1:2:3::4"))
    assert found.hops == (Hop("2001:db8:1:2:3::4", "believed"),)
    assert found.address == "2001:db8:1:2::/64"


def by_header(request: Any) -> Any:
    return request.headers.get("X-Tenant")


def exempt(request: Any) -> bool:
    return "X-Exempt" in request.headers


def broken(request: Any) -> Any:
    raise RuntimeError("a secret")


def test_who_it_is(settings: Any) -> None:
    settings.RATELIMITS = {"TENANT": by_header, "EXEMPT": exempt}
    found = seen(request(HTTP_X_TENANT="acme", HTTP_X_EXEMPT="1"))
    assert (found.tenant, found.exempt, found.failed) == ("acme", True, ())
    assert seen(request()).tenant is None
    assert found.caller.tenant == "acme"


def test_errors_of_the_project_are_told_without_their_text(settings: Any) -> None:
    settings.RATELIMITS = {"TENANT": broken, "EXEMPT": broken}
    found = seen(request())
    assert found.failed == ("TENANT: RuntimeError", "EXEMPT: RuntimeError")
    assert (found.tenant, found.exempt) == (None, False)
    assert "a secret" not in repr(found)
