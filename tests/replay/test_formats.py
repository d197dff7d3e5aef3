"""Lines as servers write them."""

from __future__ import annotations

import pytest

from ratelimits.replay.formats import (
    COMBINED,
    COMMON,
    Fields,
    Names,
    missing,
    reader,
    unescaped,
    usual,
)
from ratelimits.replay.paths import Kind, Paths, path_of

AGENT = '"-" "curl/8.5"'
MSEC = '$msec $remote_addr "$http_x_tenant" "$request" $status'
APACHE = (
    'api.example.com - acme [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 23 '
    r'"http://x/\"y\"" "Mozilla/4.08 [en] (Win98; I)"'
)


USUAL = Names()


def read(line: str, names: Names = USUAL, log_format: str = COMBINED) -> Fields | None:
    return reader(log_format, names)(line)


@pytest.mark.parametrize(
    ("line", "time", "tenant", "asked"),
    [
        (
            f'10.0.0.1 - acme [14/Nov/2023:22:13:20 +0100] "GET /x?y=1 HTTP/1.1" 200 5 {AGENT}\n',
            "14/Nov/2023:22:13:20 +0100",
            "acme",
            "GET /x?y=1 HTTP/1.1",
        ),
        (APACHE, "10/Oct/2000:13:55:36 -0700", "acme", "GET /a HTTP/1.0"),
        # A user's name with a space, an address of version 6, and more fields than expected.
        (
            f'::1 - john doe [14/Nov/2023:22:13:20 +0000] "-" 400 0 {AGENT} "extra" 0.003',
            "14/Nov/2023:22:13:20 +0000",
            "john doe",
            "-",
        ),
        # As Apache and as nginx write quotes.
        (
            rf'h - u [14/Nov/2023:22:13:20 +0000] "GET /\"a\" HTTP/1.1" 200 5 {AGENT}',
            "14/Nov/2023:22:13:20 +0000",
            "u",
            r"GET /\"a\" HTTP/1.1",
        ),
        (
            rf'h - u [14/Nov/2023:22:13:20 +0000] "\x16\x03\x01\x22" 400 5 {AGENT}',
            "14/Nov/2023:22:13:20 +0000",
            "u",
            r"\x16\x03\x01\x22",
        ),
    ],
)
def test_combined(line: str, time: str, tenant: str, asked: str) -> None:
    assert read(line) == Fields(time, tenant, asked, None)


def test_common() -> None:
    """Servers that nobody told of a format write one of these two."""
    line = 'h - acme [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 23'
    for rest in ("", f" {AGENT}"):
        found = read(line + rest, log_format=usual(USUAL))
        assert found == Fields("10/Oct/2000:13:55:36 -0700", "acme", "GET /a HTTP/1.0", None)
    by_agent = Names(tenant="http_user_agent")
    found = read(f"{line} {AGENT}", by_agent, usual(by_agent))
    assert found is not None and found.tenant == "curl/8.5"
    assert (usual(USUAL), usual(by_agent), usual(Names("none"))) == (COMMON, COMBINED, COMBINED)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "\n",
        "garbage",
        '{"a":' * 100_000,
        '10.0.0.1 - - [14/Nov/2023:22:13:20 +0000] "GET / HT',
        "{",
        "{]",
        "[1]",
    ],
)
def test_what_is_no_line(line: str) -> None:
    assert read(line) is None


def test_json_that_is_too_deep() -> None:
    assert read('{"a":' * 100_000) is None


def test_an_own_format() -> None:
    line = '1700000000.123 10.0.0.1 "org:7" "GET /x HTTP/1.1" 200'
    found = read(line, Names(tenant="http_x_tenant"), MSEC)
    assert found == Fields("1700000000.123", "org:7", "GET /x HTTP/1.1", None)


def test_a_field_at_the_end_and_one_for_two_purposes() -> None:
    names = Names(tenant="key", cost="units")
    assert read("[1700000000.5] acme 7", names, "[${msec}] $key $units") == Fields(
        "1700000000.5", "acme", None, "7"
    )
    same = read("1700000000.5 acme", Names("key", cost="key"), "$msec $key")
    assert same == Fields("1700000000.5", "acme", None, "acme")


def test_the_best_time_of_several() -> None:
    found = read("[x] 1700000000.5 acme", Names("key"), "[$time_local] $msec $key")
    assert found == Fields("1700000000.5", "acme", None, None)
    named = read("[x] 1700000000.5 acme", Names("key", "time_local"), "[$time_local] $msec $key")
    assert named == Fields("x", "acme", None, None)


def test_fields_that_a_format_lacks() -> None:
    assert missing(COMBINED, Names()) is None
    assert missing(COMBINED, Names(cost="units")) == "units"
    assert read("anything", Names(tenant="nobody")) is None


def test_json() -> None:
    line = '{"time": 1700000000.123456, "remote_user": "acme", "path": "/x", "status": 200}'
    assert read(line) == Fields("1700000000.123456", "acme", "/x", None)


def test_json_inside_of_json() -> None:
    line = '{"ts": 1, "auth": {"org": {"id": 7}}, "a.b": "flat", "uri": "/x", "n": {"cost": 3}}'
    names = Names(tenant="auth.org.id", cost="n.cost")
    assert read(line, names) == Fields(1, 7, "/x", 3)
    assert read(line, Names(tenant="a.b")) == Fields(1, "flat", "/x", None)
    for path in ("auth.nobody.id", "auth.org.id.more", "nothing", "auth.org"):
        assert read(line, Names(tenant=path)) == Fields(1, None, "/x", None)


def test_a_garbage_line_of_much_the_same_takes_no_time() -> None:
    """No pattern tries all ways to split a long line."""
    for piece in (" ", "- ", '" ', "[", '\\"', "] "):
        assert read(piece * 20_000) is None


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (r"a\x22b", 'a"b'),
        (r"a\"b\\c", 'a"b\\c'),
        (r"Gr\xC3\xB6\xC3\x9Fe", "Größe"),
        (r"\xFF", "\xff"),
        ("Größe", "Größe"),
    ],
)
def test_what_servers_escape(text: str, right: str) -> None:
    assert unescaped(text) == right


@pytest.mark.parametrize(
    ("request_line", "path"),
    [
        ("GET /a/b?c=d HTTP/1.1", "/a/b"),
        ("POST /a%20b HTTP/2.0", "/a b"),
        ("/a/b?c", "/a/b"),
        ("GET /a b HTTP/1.1", "/a b"),
        ("GET /old", "/old"),
        ("-", "-"),
    ],
)
def test_paths(request_line: str, path: str) -> None:
    assert path_of(request_line) == path


def test_scopes_of_paths() -> None:
    scopes = [("api", "/api/"), ("search", "/api/search"), ("files", "/api/*/files")]
    paths = Paths(scopes, only=["/api/"], costs={"search": 5, "": 2})
    assert paths.kind("GET /api/orders HTTP/1.1") == Kind("api", 1)
    assert paths.kind("GET /api/search?q=/api/x/files HTTP/1.1") == Kind("search", 5)
    assert paths.kind("GET /api/7/files/9 HTTP/1.1") == Kind("files", 1)
    assert paths.kind("GET /api/7/8/files HTTP/1.1") == Kind("api", 1)
    assert paths.kind("GET /static/x.css HTTP/1.1") is None
    assert paths.everything == Kind("", 2)
    assert paths.matter and not Paths().matter
