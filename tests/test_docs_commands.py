"""What docs/commands.md shows is what happens."""

from __future__ import annotations

import gzip
import io
import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import get_commands
from freezegun import freeze_time

from ratelimits.audit.report import audit
from ratelimits.limiter import take
from ratelimits.models import Plan, Tenant
from tests.commands import Ended, run
from tests.docs.pages import text_of
from tests.docs.samples import commands, sample

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fresh")]

PAGE = "docs/commands.md"
TEXT = text_of(PAGE)
COMMANDS = commands(PAGE)
IN_README = [
    line.partition("#")[0]
    for line in sample("README.md", "manage.py ratelimits_export").splitlines()
]
PLANS = sample(PAGE, "[plans.free]")
CUSTOMERS = sample(PAGE, "key,name,plan")


def lines() -> Iterator[str]:
    """An hour of three tenants, one of whom has a bad minute."""
    calls = [(n * 15, "clinic") for n in range(240)]
    calls += [(1800 + n // 2, "bakery") for n in range(360)]
    calls += [(n * 2, "acme") for n in range(1500)] + [(725 + n // 50, "acme") for n in range(250)]
    for second, tenant in sorted(calls):
        time = f"30/Nov/2026:09:{second // 60:02}:{second % 60:02} +0000"
        request = f"GET /api/{'search' if second % 7 == 0 else 'orders'} HTTP/1.1"
        yield f'10.0.0.1 - {tenant} [{time}] "{request}" 200 5 "-" "curl/8.5"\n'


@pytest.fixture(autouse=True)
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Path:
    """A directory with all files that the page is about, and a database with its plans."""
    rates = {"anon": "100/day", "user": "1000/day", "reports": "5/hour"}
    settings.REST_FRAMEWORK = {"DEFAULT_THROTTLE_RATES": rates}
    log = "".join(lines())
    (tmp_path / "plans.toml").write_text(PLANS)
    (tmp_path / "customers.csv").write_text(CUSTOMERS)
    (tmp_path / "access.log").write_text(log)
    (tmp_path / "access.log.1.gz").write_bytes(gzip.compress(log.encode()))
    (tmp_path / "own.log").write_text('1796029207.123 10.0.0.1 "acme" "GET / HTTP/1.1" 200\n')
    said = {"time": 1796029207.5, "path": "/", "auth": {"org": "acme"}}
    (tmp_path / "log.jsonl").write_text(json.dumps(said))
    monkeypatch.chdir(tmp_path)
    assert run("ratelimits_apply", "plans.toml").code == 0
    User.objects.create_user("maria")
    Tenant.objects.create(key="user:7", plan=Plan.objects.get(slug="pro"))
    return tmp_path


def typed(command: str, monkeypatch: pytest.MonkeyPatch) -> Ended:
    """As a shell does it, as far as the page needs one."""
    source, pipe, rest = command.rpartition(" | ")
    if pipe:
        assert source.startswith("zcat -f ")
        found = [Path(name).read_bytes() for name in shlex.split(source)[2:]]
        plain = [gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw for raw in found]
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"".join(plain))))
    rest, _, target = rest.partition(" > ")
    words = shlex.split(rest)
    assert words[:2] == ["python", "manage.py"]
    ended = run(*words[2:])
    if target:
        Path(target).write_text(ended.out)
    return ended


def the(start: str) -> str:
    (command,) = [
        command for command in COMMANDS if command.startswith(f"python manage.py {start}")
    ]
    return command


@pytest.mark.parametrize("command", dict.fromkeys([*COMMANDS, *map(str.strip, IN_README)]))
def test_each_command(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take("user:7", cost=3)
    ended = typed(command, monkeypatch)
    assert ended.code == 0, ended.err
    assert ended.out


def test_the_commands_of_the_readme_are_found() -> None:
    assert len(IN_README) == 5


def test_a_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = typed("python manage.py ratelimits_replay access.log --plan pro", monkeypatch)
    assert ended.out == sample(PAGE, "2,350 calls of 3 tenants")


def test_a_chart(there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    typed(the("ratelimits_replay access.log --plan pro --plans"), monkeypatch)
    assert (there / "pro.svg").read_text().startswith("<svg")


def test_a_format_as_nginx_has_it() -> None:
    (written,) = re.findall("log_format limits ('.*');", sample(PAGE, "log_format"))
    assert f"--format {written}" in the("ratelimits_replay own.log")


def test_a_diff(there: Path) -> None:
    shown = sample(PAGE, "~ plan")
    text = PLANS.replace('"60/m"\nburst = 20', '"30/m"')
    text = re.sub(r"(?s)\[plans.enterprise\].*?(?=\[service)", "", text)
    (there / "plans.toml").write_text(
        f'{text}\n[service_limits.flood]\nrate = "100/m"\nper = "address"'
    )
    ended = run("ratelimits_apply", "plans.toml", "--diff")
    assert ended.code == 1
    assert ended.out.splitlines() == [*shown.splitlines(), *ended.out.splitlines()[3:]]


def test_pruning_is_as_it_says(there: Path) -> None:
    text = PLANS
    (there / "plans.toml").write_text(text[: text.index("[plans.pro]")])
    ended = run("ratelimits_apply", "plans.toml", "--prune")
    assert ended.code == 2 and "user:7" in ended.err


@freeze_time("2026-11-30 12:00:00")
def test_where_a_tenant_stands(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.RATELIMITS = {"CLOCK": "process"}
    take("user:7", cost=12)
    ended = typed("python manage.py ratelimits_show user:7", monkeypatch)
    assert ended.out == sample(PAGE, "user:7: plan pro")


def test_what_is_made_of_the_rates_of_drf() -> None:
    Tenant.objects.all().delete()
    Plan.objects.all().delete()
    assert run("ratelimits_import", "--drf").out == sample(PAGE, '+ plan "default": name')


def test_the_list_of_customers() -> None:
    assert run("ratelimits_import", "--csv", "customers.csv").code == 0
    found = Tenant.objects.select_related("plan").order_by("key")
    assert [(each.key, each.plan and each.plan.slug) for each in found] == [
        ("user:7", "pro"),
        ("user:8", "pro"),
        ("user:9", None),
    ]
    (own,) = Tenant.objects.get(key="user:8").limits.all()
    assert (own.name, str(own.rate), own.replaces) == ("requests", "1200/m", "pro/requests 600/m")


def test_the_file_is_what_export_prints(there: Path) -> None:
    """But for the order, and the line that says what it is."""
    (there / "exported.toml").write_text(run("ratelimits_export").out)
    assert run("ratelimits_apply", "exported.toml", "--diff", "--prune").code == 0


def test_the_names_of_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ratelimits.audit.usage._is_anything_known", lambda: True)
    monkeypatch.setattr("ratelimits.audit.usage.counts_alone", lambda: False)
    names = {finding.name for finding in audit()} | {"usage"}
    section = TEXT.partition("## What to look at")[2]
    assert set(re.findall(r"^\| `([a-z._]+)` \|", section, re.MULTILINE)) == names | {"name"}


def test_every_command_is_named() -> None:
    ours = {name for name, app in get_commands().items() if app == "ratelimits"}
    table = TEXT.partition("## Plans as code")[0]
    assert set(re.findall(r"`(ratelimits_\w+)`", table)) == ours
