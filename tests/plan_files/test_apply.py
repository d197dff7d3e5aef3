"""ratelimits_apply and ratelimits_export, on the rows that they are about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User

from ratelimits.limiter import take
from ratelimits.models import Plan, PlanLimit, ScopeCost, ServiceLimit, Tenant
from ratelimits.plan_files.applying import apply as make
from ratelimits.plan_files.comparing import compare
from ratelimits.plan_files.kinds import stored
from ratelimits.plan_files.reading import read
from tests.commands import Ended, run

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fresh")]

TEXT = """
[plans.free]
name = "Free"
is_default = true
is_anonymous = true

[plans.free.limits.requests]
rate = "60/m"
burst = 20

[plans.pro]
name = "Pro"
description = "For one product\\nin production."

[plans.pro.limits.requests]
rate = "600/m"
mode = "shadow"

[plans.pro.limits."a day"]
rate = "100000/d"
algorithm = "fixed_window"
scope = "search"

[service_limits.breaker]
rate = "1000/s"

[scope_costs.search]
cost = 5
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "plans.toml"
    path.write_text(TEXT)
    return path


def apply(file: Path, *options: str, text: str | None = None) -> Ended:
    if text is not None:
        file.write_text(text)
    return run("ratelimits_apply", str(file), *options)


def everything() -> list[list[Any]]:
    models: tuple[Any, ...] = (Plan, PlanLimit, ScopeCost, ServiceLimit)
    return [list(model.objects.order_by("pk").values()) for model in models]


def test_an_empty_database(file: Path) -> None:
    ended = apply(file)
    assert (ended.code, ended.err) == (0, "")
    assert '+ plan "pro", limit "a day": rate 100000/d, scope search' in ended.out
    free, pro = Plan.objects.order_by("slug")
    assert (free.name, free.is_default, free.is_anonymous) == ("Free", True, True)
    assert pro.description == "For one product\nin production."
    assert {(limit.name, str(limit.rate), limit.mode) for limit in pro.limits.all()} == {
        ("requests", "600/m", "shadow"),
        ("a day", "100000/d", "enforce"),
    }
    assert free.limits.get().burst == 20
    assert ServiceLimit.objects.get().per == "everyone"


def test_a_second_time(file: Path) -> None:
    apply(file)
    before = everything()
    assert "Everything is as the file says." in apply(file).out
    assert apply(file, "--diff").code == 0
    assert everything() == before


def test_rates_that_mean_the_same(file: Path) -> None:
    apply(file)
    assert apply(file, "--diff", text=TEXT.replace("600/m", "600 per minute")).code == 0


def test_a_diff_changes_nothing(file: Path) -> None:
    apply(file)
    before = everything()
    ended = apply(file, "--diff", text=TEXT.replace("60/m", "30/m").replace("burst = 20", ""))
    assert (ended.code, ended.err) == (1, "1 difference")
    assert '~ plan "free", limit "requests": rate 60/m -> 30/m, burst 20 -> (none)' in ended.out
    assert everything() == before


def test_a_text_of_several_lines(file: Path) -> None:
    apply(file)
    ended = apply(file, "--diff", text=TEXT.replace("\\nin production", "\\u001b[2J"))
    assert '-> "For one product\\u001b[2J."' in ended.out
    assert '"For one product\\nin production."' in ended.out


def test_the_next_take_obeys(file: Path) -> None:
    apply(file)
    assert take("acme").outcomes[0].remaining == 19
    apply(file, text=TEXT.replace("burst = 20", "burst = 5"))
    assert take("acme").outcomes[0].remaining == 3
    assert take("acme", scope="search").outcomes[0].remaining == 3
    apply(file, text=TEXT.replace("burst = 20", "burst = 5").replace("cost = 5", "cost = 2"))
    assert take("acme", scope="search").outcomes[0].remaining == 1


def test_what_others_edit_meanwhile_stays(file: Path) -> None:
    run("ratelimits_apply", str(file))
    present, wanted = stored("default"), read(TEXT.replace("60/m", "30/m"))
    difference = compare(wanted, present, "default", prune=False)
    PlanLimit.objects.filter(rate="60/m").update(mode="shadow")
    make(difference.changes, present, "default")
    limit = PlanLimit.objects.get(plan__slug="free")
    assert (str(limit.rate), limit.mode) == ("30/m", "shadow")


def test_marks_change_hands(file: Path) -> None:
    """Each of two plans gets the mark that the other one had."""
    apply(file)
    free = TEXT.replace("is_anonymous = true", "").replace(
        'name = "Pro"', 'name = "Pro"\nis_anonymous = true'
    )
    apply(file, text=free)
    swapped = free.replace("is_default", "is_X").replace("is_anonymous", "is_default")
    ended = apply(file, text=swapped.replace("is_X", "is_anonymous"))
    assert (ended.code, ended.err) == (0, "")
    assert Plan.objects.get(is_default=True).slug == "pro"
    assert Plan.objects.get(is_anonymous=True).slug == "free"


def without(*sections: str) -> str:
    tables = TEXT.split("\n\n")
    return "\n\n".join(t for t in tables if not t.strip().startswith(sections))


def test_what_the_file_lacks_stays(file: Path) -> None:
    apply(file)
    ended = apply(file, text=without("[plans.pro"))
    assert (ended.code, ended.err) == (0, "")
    assert '= plan "pro": not in the file, stays. --prune removes it.' in ended.out
    assert Plan.objects.count() == 2
    assert apply(file, "--diff").code == 0


def test_pruning(file: Path) -> None:
    apply(file)
    text = without("[plans.pro]", '[plans.pro.limits."a day"]')
    text = text.replace("[plans.pro.limits.requests]", '[plans.pro]\nname = "Pro"')
    ended = apply(
        file,
        "--prune",
        "--diff",
        text=text.replace('mode = "shadow"', "").replace('rate = "600/m"', ""),
    )
    assert ended.code == 1
    assert '- plan "pro", limit "requests"' in ended.out and "a day" in ended.out
    assert PlanLimit.objects.count() == 3
    assert apply(file, "--prune").code == 0
    assert [limit.plan.slug for limit in PlanLimit.objects.all()] == ["free"]


def test_pruning_a_plan_takes_its_limits(file: Path) -> None:
    apply(file)
    ended = apply(file, "--prune", text=without("[plans.pro"))
    assert '- plan "pro"' in ended.out and "1 change made." in ended.out
    assert (Plan.objects.count(), PlanLimit.objects.count()) == (1, 1)


def test_a_section_that_the_file_does_not_have_is_left_alone(file: Path) -> None:
    apply(file)
    assert apply(file, "--prune", text=without("[service_limits")).code == 0
    assert ServiceLimit.objects.exists()
    apply(file, "--prune", text=without("[service_limits") + "\n\n[service_limits]")
    assert not ServiceLimit.objects.exists()


def test_a_plan_in_use_is_not_pruned(file: Path) -> None:
    apply(file)
    pro = Plan.objects.get(slug="pro")
    for number in range(12):
        Tenant.objects.create(key=f"tenant-{number:02}", plan=pro)
    before = everything()
    ended = apply(file, "--prune", text=without("[plans.pro").replace("60/m", "30/m"))
    assert ended.code == 2
    assert "12 tenants are on it: tenant-00, tenant-01" in ended.err
    assert "tenant-09, ..." in ended.err and "tenant-10" not in ended.err
    assert everything() == before


def test_the_default_plan_is_not_pruned_without_another(file: Path) -> None:
    apply(file)
    ended = apply(file, "--prune", text=without("[plans.free"))
    assert ended.code == 2
    assert 'plan "free": the file lacks it, but it is the default' in ended.err
    assert Plan.objects.count() == 2
    other = without("[plans.free").replace('name = "Pro"', 'name = "Pro"\nis_default = true')
    assert apply(file, "--prune", text=other).code == 0
    assert Plan.objects.get().is_default


def test_plans_that_billing_may_name(file: Path, settings: Any) -> None:
    settings.RATELIMITS = {"PLAN": "tests.views.nothing"}
    apply(file)
    assert "The setting PLAN" in apply(file, "--prune", text=without("[plans.pro")).err


def test_a_file_of_an_editor_that_marks_its_encoding(file: Path) -> None:
    file.write_text(f"\ufeff{TEXT}")
    assert apply(file).code == 0


def test_a_plan_without_a_default_is_told(file: Path) -> None:
    ended = apply(file, text=TEXT.replace("is_default = true", ""))
    assert ended.code == 0
    assert "No plan is the default" in ended.err


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ('"60/m"', '"ten/m"', 'plan "free", limit "requests", rate: "ten/m" is not a rate'),
        ("burst = 20", "burst = 0", 'plan "free", limit "requests", burst: '),
        ("burst = 20", 'burst = "20"', 'burst: "20" is not a whole number.'),
        ("burst = 20", "brust = 20", 'there is no "brust". Did you mean "burst"?'),
        ("burst = 20", "xyz = 20", 'there is no "xyz". There is "rate", "burst", "scope", '),
        ('"fixed_window"', '"token_bukket"', 'plan "pro", limit "a day", algorithm: '),
        ('"100000/d"', '"100000/month"\nburst = 3', 'limit "a day", burst: Only a token bucket'),
        ('rate = "600/m"', "", 'plan "pro", limit "requests", rate: This field cannot be blank.'),
        ('name = "Pro"', "", 'plan "pro", name: This field cannot be blank.'),
        ("is_default = true", "is_default = 1", "is_default: 1 is not true or false."),
        ("[plans.pro]", '[plans."p r o"]\nname = "x"\n[plans.pro]', 'plan "p r o": Enter a valid'),
        ("[service_limits.", "[service_limit.", 'Did you mean "service_limits"?'),
        ('name = "Pro"', 'name = "Pro"\nis_default = true', "only one can have is_default"),
        ("[plans.free]", "[plans.free", "This is not TOML: "),
        ("[plans.free]", "plans.x = 3\n[plans.free]", 'plan "x": write a table, such as'),
        ("cost = 5", "cost = -5", 'cost of the scope "search", cost: Ensure'),
        ("[scope_costs.search]", '[scope_costs.""]', 'cost of the scope "": This field cannot be'),
        (TEXT, "plans = 3", "[plans] is to be a table of tables."),
    ],
)
def test_faults_name_their_place(right: str, wrong: str, told: str, file: Path) -> None:
    apply(file)
    before = everything()
    assert right in TEXT
    ended = apply(file, text=TEXT.replace(right, wrong).replace("1000/s", "2000/s"))
    assert ended.code == 2
    assert told in ended.err
    assert all(line.startswith(f"{file}: ") for line in ended.err.splitlines())
    assert everything() == before


def test_a_mark_that_a_plan_has_which_stays(file: Path) -> None:
    Plan.objects.create(slug="old", name="Old", is_default=True)
    ended = apply(file)
    assert ended.code == 2
    assert 'plan "free", is_default: plan "old" has it already, which the file lacks.' in ended.err
    assert apply(file, "--prune").code == 0


def test_all_faults_at_once(file: Path) -> None:
    ended = apply(file, text=TEXT.replace("60/m", "ten/m").replace("1000/s", "1000"))
    assert len(ended.err.splitlines()) == 2


@pytest.mark.parametrize(
    "text", ["n = " + "[" * 100_000, f"n = {'9' * 5000}"], ids=["too deep", "too long"]
)
def test_what_is_too_much_for_python_is_a_fault(text: str, file: Path) -> None:
    ended = apply(file, "--diff", text=text)
    assert (ended.code, ended.out) == (2, "")
    assert "This is not TOML: " in ended.err


def test_no_such_file(tmp_path: Path) -> None:
    ended = run("ratelimits_apply", str(tmp_path / "none.toml"), "--diff")
    assert ended.code == 2 and "none.toml" in ended.err


def test_a_database_that_is_away(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is not a difference."""
    from django.db import OperationalError

    from ratelimits.management.commands import ratelimits_apply as command

    def stored(alias: str) -> Any:
        raise OperationalError("gone")

    monkeypatch.setattr(command, "stored", stored)
    assert apply(file, "--diff") == Ended(2, "", "default: gone")


def test_a_database_that_is_away_has_nothing_to_export(monkeypatch: pytest.MonkeyPatch) -> None:
    from django.db import OperationalError

    from ratelimits.plan_files import writing

    def stored(alias: str) -> Any:
        raise OperationalError("gone")

    monkeypatch.setattr(writing, "stored", stored)
    assert run("ratelimits_export") == Ended(2, "", "default: gone")


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_the_standard_input(mark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from io import StringIO

    monkeypatch.setattr("sys.stdin", StringIO(mark + TEXT))
    assert run("ratelimits_apply", "-").code == 0
    assert Plan.objects.count() == 2


def test_the_history(file: Path) -> None:
    user = User.objects.create_user("operator")
    apply(file)
    assert not LogEntry.objects.exists()
    text = without('[plans.pro.limits."a day"]', "[service_limits").replace(
        '"Pro"', '"Professional"'
    )
    added = (
        '\n\n[plans.new]\nname = "New"\n\n[plans.new.limits.n]\nrate = "1/s"\n\n[service_limits]'
    )
    ended = apply(file, "--prune", "--user", "operator", text=text + added)
    assert ended.code == 0
    said = {entry.object_repr: entry.get_change_message() for entry in LogEntry.objects.all()}
    pro = said["Professional"]
    assert "Changed name." in pro
    assert "Deleted limit of a plan “a day: 100000 requests per day”." in pro
    assert "Added limit of a plan “n: 1 request per second”." in said["New"]
    assert {entry.user for entry in LogEntry.objects.all()} == {user}
    flags = {entry.object_repr: entry.action_flag for entry in LogEntry.objects.all()}
    assert sorted(flags.values()) == [1, 2, 3]


def test_nobody_of_that_name(file: Path) -> None:
    ended = apply(file, "--user", "nobody")
    assert ended.code == 2 and "no user “nobody”" in ended.err
    assert not Plan.objects.exists()
