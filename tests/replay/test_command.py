"""ratelimits_replay as people and scripts meet it."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
from pathlib import Path
from threading import Thread
from typing import Any
from xml.etree import ElementTree

import pytest

from ratelimits.models import Plan, ScopeCost
from ratelimits.replay.progress import Progress
from tests.commands import Ended, run

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fresh")]


@pytest.fixture(autouse=True)
def plans() -> None:
    for slug, rate in (("free", "3/m"), ("pro", "6/m"), ("large", "60/m")):
        Plan.objects.create(slug=slug, name=slug).limits.create(name="calls", rate=rate)


def line(second: int, tenant: str, path: str = "/api/orders") -> str:
    time = f"30/Nov/2026:10:{second // 60:02}:{second % 60:02} +0100"
    return f'10.0.0.1 - {tenant} [{time}] "GET {path} HTTP/1.1" 200 5 "-" "curl/8.5"\n'


# Ten at once, two at once, and one.
LINES = [line(7, "acme")] * 10 + [line(67, "bakery")] * 2 + [line(68, "acme")]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "access.log"
    path.write_text("".join(LINES))
    return path


def replay(*args: Any) -> Ended:
    return run("ratelimits_replay", *map(str, args))


def told(*args: Any) -> Any:
    ended = replay(*args, "--json")
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def test_as_text(log: Path) -> None:
    ended = replay(log, "--plan", "free")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == (
        "13 calls of 2 tenants, from 2026-11-30 09:00:07 to 2026-11-30 09:01:08 UTC\n"
        "On the plan free, 7 calls (53.8%) of 1 tenant would have been refused.\n"
        "\n"
        "tenant  calls  refused    first                last                 worst minute"
        "          limits  would need\n"
        "acme    11     7 (63.6%)  2026-11-30 09:00:07  2026-11-30 09:00:07  2026-11-30 09:00 (7)"
        "  calls   large\n"
        "\n"
        "The smallest plan that would have refused nothing:\n"
        "  free   1 tenant\n"
        "  pro    0 tenants\n"
        "  large  1 tenant\n"
    )


def test_as_json(log: Path) -> None:
    found = told(log, "--plan", "free")
    acme, bakery = found.pop("tenants")
    assert found == {
        "format": 1,
        "plan": "free",
        "from": "2026-11-30T09:00:07.000000Z",
        "to": "2026-11-30T09:01:08.000000Z",
        "calls": 13,
        "refused": 7,
        "would_refuse": {},
        "lines": {"unreadable": 0, "first_unreadable": [], "without_tenant": 0, "other_paths": 0},
        "plans": ["free", "pro", "large"],
        "smallest": {"free": 1, "pro": 0, "large": 1},
        "smallest_none": 0,
    }
    assert acme == {
        "tenant": "acme",
        "calls": 11,
        "refused": 7,
        "first": "2026-11-30T09:00:07.000000Z",
        "last": "2026-11-30T09:00:07.000000Z",
        "by_minute": {"2026-11-30 09:00:00": 7},
        "by_limit": {"calls": 7},
        "would_refuse": {},
        "smallest_plan": "large",
    }
    assert (bakery["refused"], bakery["smallest_plan"]) == (0, "free")


def test_a_plan_that_refuses_nothing(log: Path) -> None:
    assert "0 calls of 0 tenants would have been refused" in replay(log, "--plan", "large").out


def test_no_plan_is_large_enough(log: Path) -> None:
    Plan.objects.filter(slug="large").delete()
    found = told(log, "--plan", "pro")
    assert (found["refused"], found["smallest_none"]) == (4, 1)
    assert "none of them" in replay(log, "--plan", "pro").out


def test_several_files_in_any_order(log: Path, tmp_path: Path) -> None:
    """As if all lines had been in one file, in the order of time."""
    shuffled = tmp_path / "second.log"
    shuffled.write_text("".join(reversed(LINES[5:])))
    log.write_text("".join(LINES[:5]))
    packed = tmp_path / "rotated.gz"
    packed.write_bytes(gzip.compress(shuffled.read_bytes()))
    one, other = told(log, shuffled, "--plan", "free"), told(packed, log, "--plan", "free")
    assert (one["refused"], one["calls"]) == (7, 13)
    assert one == other


def test_the_standard_input(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for content in (log.read_bytes(), gzip.compress(log.read_bytes())):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert told("-", "--plan", "free")["refused"] == 7


def test_a_pipe(log: Path, tmp_path: Path) -> None:
    """As a shell makes for `<(zcat access.log.gz)`."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=lambda: pipe.write_bytes(log.read_bytes()), daemon=True)
    writer.start()
    assert told(pipe, "--plan", "free")["refused"] == 7
    writer.join(20)
    assert not writer.is_alive()


def test_an_empty_file_among_others(log: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.log").touch()
    assert told(tmp_path / "empty.log", log, "--plan", "free")["refused"] == 7


def test_lines_that_cannot_be_read(log: Path, tmp_path: Path) -> None:
    noise = ["garbage\n", "\n", "{]\n", line(7, "x").replace("Nov", "Foo"), "\xff\x00\n"]
    log.write_text("".join([*noise, *LINES, *["garbage"] * 10]), encoding="latin-1")
    torn = tmp_path / "torn.gz"
    torn.write_bytes(gzip.compress(log.read_bytes())[:-12])
    found = told(log, "--plan", "free")
    assert found["refused"] == 7
    assert found["lines"]["unreadable"] == 5
    assert found["lines"]["first_unreadable"] == [f"{log}:{n}" for n in (1, 3, 4, 5, 19)]
    assert "5 lines can't be read, the first of them: " in replay(log, "--plan", "free").out
    assert told(torn, "--plan", "free")["lines"]["first_unreadable"][-1].startswith(f"{torn}:")


def test_names_that_would_move_the_cursor(log: Path) -> None:
    """As a caller may make them up, and servers write them."""
    log.write_text(line(7, r"\x1b[2Jme") * 9)
    assert "\x1b" not in replay(log, "--plan", "free").out
    assert told(log, "--plan", "free")["tenants"][0]["tenant"] == "\x1b[2Jme"


def test_calls_of_nobody(log: Path) -> None:
    log.write_text("".join([*LINES, line(1, "-"), line(2, "-")]))
    ended = replay(log, "--plan", "free")
    assert "Of no tenant, and left out: 2 calls" in ended.out
    assert told(log, "--plan", "free", "--tenant", "$remote_addr")["calls"] == 15


def test_a_log_that_does_not_know_who_calls(log: Path) -> None:
    """As most do where callers have a key: what to say instead is told."""
    log.write_text("".join(line(second, "-") for second in range(3)))
    ended = replay(log, "--plan", "free")
    assert (ended.code, "3 have no remote_user" in ended.err) == (2, True)
    assert "Say with --tenant which field tells who called, such as remote_addr" in ended.err
    assert replay(log, "--plan", "free", "--tenant", "remote_addr").code == 0


def test_scopes_and_costs(log: Path) -> None:
    large = Plan.objects.get(slug="large")
    large.limits.create(name="search", rate="5/m", scope="search")
    calls = [line(n, "acme", "/api/search?q=1") for n in range(3)]
    log.write_text("".join([*calls, line(4, "acme"), line(5, "acme", "/static/x.css")]))
    only = ("--only", "/api/", "--plan", "large")
    found = told(log, *only, "--scope", "search=/api/search", "--cost", "search=2")
    assert (found["calls"], found["refused"], found["lines"]["other_paths"]) == (4, 1, 1)
    assert found["tenants"][0]["by_limit"] == {"search": 1}
    assert told(log, *only, "--cost", "30")["refused"] == 2
    assert "On other paths, and left out: 1 call" in replay(log, *only).out


def test_the_cost_that_an_operator_set(log: Path) -> None:
    """Goes before what lines say, and what is said here before that."""
    ScopeCost.objects.create(scope="search", cost=2)
    log.write_text("".join('{"ts": 1796029207, "t": "a", "u": 7, "path": "/s"}\n' for _ in "12"))
    own = (log, "--plan", "free", "--tenant", "t", "--cost-field", "u")
    assert told(*own)["refused"] == 2
    assert told(*own, "--scope", "search=/s")["refused"] == 1
    assert told(*own, "--scope", "search=/s", "--cost", "search=1")["refused"] == 0


def test_an_own_format(log: Path) -> None:
    log.write_text("".join(f'1796029207.{n:03} acme "GET /a" {n % 3}\n' for n in range(9)))
    own = ("--format", '$msec $key "$request" $units', "--tenant", "key", "--cost-field", "units")
    assert told(log, "--plan", "free", *own)["refused"] == 4


def test_a_cost_with_more_digits_than_can_be_read(log: Path) -> None:
    lines = [{"ts": 1796029207, "t": "acme", "u": "9" * digits} for digits in (1, 30, 5000)]
    log.write_text("".join(json.dumps(said) + "\n" for said in lines))
    found = told(log, "--plan", "free", "--tenant", "t", "--cost-field", "u")
    assert (found["calls"], found["lines"]["unreadable"]) == (2, 1)


def test_logs_of_json(log: Path) -> None:
    lines = [{"ts": 1796029207 + n, "auth": {"org": "acme"}, "path": "/"} for n in range(9)]
    log.write_text("noise\n" + "".join(json.dumps(said) + "\n" for said in lines))
    found = told(log, "--plan", "free", "--tenant", "auth.org")
    assert (found["calls"], found["refused"], found["lines"]["unreadable"]) == (9, 6, 1)


def test_plans_that_are_still_a_file(log: Path, tmp_path: Path) -> None:
    file = tmp_path / "plans.toml"
    file.write_text('[plans.new]\nname = "New"\nlimits.n = { rate = "4/m" }\n')
    found = told(log, "--plan", "new", "--plans", file)
    assert (found["refused"], found["plans"]) == (6, ["new"])
    file.write_text('[plans.new]\nname = "New"\nlimits.n = { rate = "four/m" }\n')
    ended = replay(log, "--plan", "new", "--plans", file)
    assert ended.code == 2 and '"four/m" is not a rate' in ended.err


def test_limits_in_shadow(log: Path) -> None:
    Plan.objects.get(slug="free").limits.update(mode="shadow")
    found = told(log, "--plan", "free")
    assert (found["refused"], found["would_refuse"]) == (0, {"calls": 7})
    assert "in shadow, would refuse 7 calls" in replay(log, "--plan", "free").out


def test_only_so_many_are_shown(log: Path) -> None:
    log.write_text("".join(line(7, f"tenant-{n % 30}") for n in range(300)))
    ended = replay(log, "--plan", "free", "--top", "2")
    assert "... and 28 tenants more; --top shows more of them." in ended.out
    assert len(told(log, "--plan", "free", "--top", "2")["tenants"]) == 30


@pytest.mark.parametrize(
    ("hours", "width"), [(0, "60 s"), (3, "2 min"), (24 * 40, "12 h"), (24 * 3000, "26 days")]
)
def test_the_chart(log: Path, tmp_path: Path, hours: int, width: str) -> None:
    Plan.objects.create(slug="a-b")
    late = f'{{"time": {1796029207 + hours * 3600}, "remote_user": "<&>"}}\n'
    log.write_text("".join([*LINES, late]))
    chart = tmp_path / "chart.svg"
    replay(log, "--plan", "free", "--chart", chart)
    root = ElementTree.parse(chart).getroot()
    name = "{http://www.w3.org/2000/svg}"
    titles = [group.findtext(f"{name}title") or "" for group in root.iter(f"{name}g")]
    assert 1 <= len(titles) <= 120
    assert "7 refused" in titles[0]
    for bar in root.iter(f"{name}rect"):
        assert float(bar.get("height", "")) >= 0
        assert float(bar.get("x", "0")) + float(bar.get("width", "")) <= 961
    assert root.findtext(f"{name}title") == "Calls on the plan free"
    assert f"a bar: {width}" in [text.text for text in root.iter(f"{name}text")]
    assert "14 calls, 7 refused" in (root.findtext(f"{name}desc") or "")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("access.log", "--plan", "none"), 'There is no plan "none". There is free, pro, large.'),
        (("gone.log", "--plan", "free"), "gone.log"),
        ((".", "--plan", "free"), "Is a directory"),
        (("access.log", "--plan", "free", "--chart", "gone/chart.svg"), "gone/chart.svg"),
        (("access.log", "--plan", "free", "--plans", "gone.toml"), "gone.toml"),
        (("access.log", "--plan", "free", "--only", "/none"), "13 are of other paths"),
        (("access.log", "--plan", "free", "--tenant", "org"), 'no "org". It has remote_addr, '),
        (
            ("access.log", "--plan", "free", "--format", "$mesc $user", "--time", "msec"),
            'no "remote_user"',
        ),
    ],
)
def test_nothing_to_try(
    args: tuple[str, ...], said: str, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(log.parent)
    ended = replay(*args)
    assert ended.code == 2
    assert said in ended.err


@pytest.mark.parametrize("option", ["--scope=search", "--scope==/x", "--cost=search", "--cost=a=b"])
def test_options_that_say_nothing(option: str, log: Path) -> None:
    assert "is not written as search=" in replay(log, "--plan", "free", option).err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def write(self, text: str, style_func: Any = None, ending: str = "") -> int:
        return super().write(text + ending)


def test_progress_on_a_terminal() -> None:
    terminal = Terminal()
    with Progress(terminal, "reading", 200) as progress:
        progress.pass_over(50)
        progress.at(50)
    assert "reading [###############...............]  50%" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_progress_without_a_total() -> None:
    terminal = Terminal()
    with Progress(terminal, "reading", None) as progress:
        progress.at(5000)
    assert "reading 5,000" in terminal.getvalue()


def test_no_progress_where_nobody_looks() -> None:
    stream = io.StringIO()
    with Progress(stream, "reading", 200) as progress:
        progress.at(50)
    assert stream.getvalue() == ""
