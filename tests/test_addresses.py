from __future__ import annotations

import logging
from ipaddress import IPv6Address, ip_network
from typing import Any

import pytest
from django.test import RequestFactory, override_settings
from hypothesis import given, settings
from hypothesis import strategies as st
from rest_framework.request import Request

from ratelimits.addresses import MOST, UNKNOWN, address_of, normalised
from ratelimits.logs import once

factory = RequestFactory()


@pytest.fixture(autouse=True)
def say_everything_again() -> None:
    once.forget()


def address(remote: str | None = "198.51.100.7", forwarded: str | None = None, **own: Any) -> str:
    """What a request counts by, under settings of its own."""
    request = factory.get("/")
    del request.META["REMOTE_ADDR"]
    if remote is not None:
        request.META["REMOTE_ADDR"] = remote
    if forwarded is not None:
        request.META["HTTP_X_FORWARDED_FOR"] = forwarded
    with override_settings(RATELIMITS=own):
        return address_of(request)


def test_peer() -> None:
    assert address("198.51.100.7") == "198.51.100.7"


def test_behind_drf_too() -> None:
    assert address_of(Request(factory.get("/", REMOTE_ADDR="198.51.100.7"))) == "198.51.100.7"


def test_by_default_the_header_is_ignored() -> None:
    """Case 2."""
    seen = {address("198.51.100.7", f"203.0.113.{n}") for n in range(10)}
    assert seen == {"198.51.100.7"}


@pytest.mark.parametrize(
    ("forwarded", "trusted", "expected"),
    [
        ("9.9.9.9", 1, "9.9.9.9"),
        ("1.1.1.1, 9.9.9.9", 1, "9.9.9.9"),
        ("1.1.1.1,9.9.9.9", 1, "9.9.9.9"),
        ("1.1.1.1, 9.9.9.9, 10.0.0.1", 2, "9.9.9.9"),
        ("6.6.6.6, 1.1.1.1, 9.9.9.9, 10.0.0.1", 2, "9.9.9.9"),
        # Fewer entries than proxies: whoever sent it came from within.
        ("9.9.9.9", 3, "9.9.9.9"),
        ("  9.9.9.9  ", 1, "9.9.9.9"),
        ("1.1.1.1, 9.9.9.9:52100", 1, "9.9.9.9"),
        ("1.1.1.1, [2001:db8::1]:443", 1, "2001:db8::/64"),
        ("1.1.1.1, unknown", 1, UNKNOWN),
        ("1.1.1.1, _hidden", 1, UNKNOWN),
        ("1.1.1.1,", 1, UNKNOWN),
        (",", 1, UNKNOWN),
        # No header at all: the peer.
        ("", 1, "198.51.100.7"),
        (None, 1, "198.51.100.7"),
    ],
)
def test_trusted_proxies(forwarded: str | None, trusted: int, expected: str) -> None:
    assert address("198.51.100.7", forwarded, TRUSTED_PROXIES=trusted) == expected


@pytest.mark.parametrize(
    ("written", "counted"),
    [
        ("192.0.2.1", "192.0.2.1"),
        (" 192.0.2.1 ", "192.0.2.1"),
        ("192.0.2.1:8080", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("::ffff:c000:201", "192.0.2.1"),
        ("[::ffff:192.0.2.1]:8080", "192.0.2.1"),
        ("0:0:0:0:0:ffff:c000:0201", "192.0.2.1"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("2001:DB8:1:2:FFFF::9", "2001:db8:1:2::/64"),
        ("[2001:db8:1:2::1]", "2001:db8:1:2::/64"),
        ("[2001:db8:1:2::1]:8080", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("[fe80::1%25eth0]:80", "fe80::/64"),
        ("::1", "::/64"),
        ("", UNKNOWN),
        ("localhost", UNKNOWN),
        ("192.0.2", UNKNOWN),
        ("192.0.2.256", UNKNOWN),
        ("010.0.0.1", UNKNOWN),
        ("1.2.3.4.5", UNKNOWN),
        ("12345", UNKNOWN),
        ("2001:db8:::1", UNKNOWN),
        ("[]", UNKNOWN),
        (":80", UNKNOWN),
        ("\u0661.1.1.1", UNKNOWN),
        ("192.0.2.1/24", UNKNOWN),
        ("x" * 100_000, UNKNOWN),
    ],
)
def test_forms(written: str, counted: str) -> None:
    assert address(written) == counted


def test_a_zone_is_no_part_of_the_address() -> None:
    """It is the name of this machine's own interface."""
    assert address("fe80::1%eth0", IPV6_PREFIX=128) == "fe80::1"


def test_one_customer_of_ipv6_is_one_caller() -> None:
    """Case 5."""
    first, second, third = map(
        address, ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", "2001:db8:1:3::1")
    )
    assert first == second != third


def test_mapped_addresses_are_not_one_caller() -> None:
    """Case 6."""
    written = ["::ffff:192.0.2.1", "::ffff:198.51.100.2", "192.0.2.1", "::ffff:c000:201"]
    one, other, plain, hexadecimal = map(address, written)
    assert one == plain == hexadecimal != other


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        (128, "2001:db8:1:2:3:4:5:6"),
        (64, "2001:db8:1:2::/64"),
        (56, "2001:db8:1::/56"),
        (48, "2001:db8:1::/48"),
        (1, "::/1"),
    ],
)
def test_prefix(prefix: int, expected: str) -> None:
    assert address("2001:db8:1:2:3:4:5:6", IPV6_PREFIX=prefix) == expected
    assert address("192.0.2.1", IPV6_PREFIX=prefix) == "192.0.2.1"


@pytest.mark.parametrize("remote", [None, "", "unix:", "/run/app.sock"])
def test_without_an_address_all_share_one_bucket(
    remote: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    assert address(remote) == address(remote) == UNKNOWN
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "no usable address" in caplog.text


@pytest.mark.parametrize(
    "peer",
    ["10.0.0.1", "127.0.0.1", "192.168.1.1", "::1", "fd00::1", "::ffff:10.0.0.1", "100.64.0.1"],
)
def test_an_ignored_header_of_a_proxy_is_told_once(
    peer: str, caplog: pytest.LogCaptureFixture
) -> None:
    address(peer, "9.9.9.9")
    assert len(caplog.records) == 1
    address("10.0.0.2", "8.8.8.8")
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "TRUSTED_PROXIES" in caplog.text
    # An address is personal data, and the log is no place for it.
    assert peer not in caplog.text and "9.9.9.9" not in caplog.text


@pytest.mark.parametrize("peer", [None, ""])
def test_an_ignored_header_from_a_unix_socket_is_told(
    peer: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    assert address(peer, "9.9.9.9") == UNKNOWN
    assert "TRUSTED_PROXIES" in caplog.text


@pytest.mark.parametrize(
    ("peer", "forwarded", "trusted"),
    [("10.0.0.1", None, 0), ("9.9.9.9", "1.1.1.1", 0), ("10.0.0.1", "9.9.9.9", 1)],
)
def test_nothing_to_tell(
    peer: str, forwarded: str | None, trusted: int, caplog: pytest.LogCaptureFixture
) -> None:
    address(peer, forwarded, TRUSTED_PROXIES=trusted)
    assert caplog.records == []


def test_long_texts_are_not_remembered() -> None:
    """Or else a caller could fill the memory."""
    normalised.cache_clear()
    for letter in "abcdef":
        address("10.0.0.1", letter * (MOST + 1), TRUSTED_PROXIES=1)
    assert normalised.cache_info().currsize == 1


def test_the_longest_address_is_short_enough() -> None:
    text = "[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255%interface-name-x]:65535"
    assert len(text) <= MOST
    assert address(text) == "ffff:ffff:ffff:ffff::/64"


texts = st.one_of(
    st.text(),
    st.text(alphabet="0123456789abcdefABCDEF:.[]%/, \t\x00", max_size=60),
    st.ip_addresses().map(str),
)


@settings(deadline=None)
@given(texts, texts | st.none(), st.integers(0, 4), st.integers(1, 128))
def test_no_text_ever_raises(remote: str, forwarded: str | None, trusted: int, prefix: int) -> None:
    counted = address(remote, forwarded, TRUSTED_PROXIES=trusted, IPV6_PREFIX=prefix)
    assert counted == UNKNOWN or ip_network(counted)


@settings(deadline=None)
@given(st.ip_addresses(v=4), st.integers(0, 65535), st.integers(1, 128))
def test_all_forms_of_ipv4_count_as_one(ip: Any, port: int, prefix: int) -> None:
    forms = [f"{ip}", f"{ip}:{port}", f"::ffff:{ip}", f"[::ffff:{ip}]:{port}"]
    assert {normalised(form, prefix) for form in forms} == {str(ip)}


@settings(deadline=None)
@given(st.ip_addresses(v=6), st.ip_addresses(v=6), st.integers(1, 127))
def test_ipv6_counts_by_prefix(one: Any, other: Any, prefix: int) -> None:
    same = int(one) >> (128 - prefix) == int(other) >> (128 - prefix)
    if one.ipv4_mapped is None and other.ipv4_mapped is None:
        counted = normalised(str(one), prefix), normalised(str(other), prefix)
        assert (counted[0] == counted[1]) is same
        assert one in ip_network(counted[0])


@settings(deadline=None)
@given(st.ip_addresses(v=6), st.integers(1, 128), st.data())
def test_neighbours_within_a_prefix_count_as_one(one: Any, prefix: int, data: Any) -> None:
    host = data.draw(st.integers(0, 2 ** (128 - prefix) - 1))
    network = int(one) >> (128 - prefix) << (128 - prefix)
    neighbour = IPv6Address(network + host)
    if one.ipv4_mapped is None and neighbour.ipv4_mapped is None:
        assert normalised(str(neighbour), prefix) == normalised(str(one), prefix)
