"""ratelimits_import, on the rows that it makes."""

from __future__ import annotations

import json
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.urls import path as url
from django.utils import timezone
from rest_framework.throttling import AnonRateThrottle, ScopedRateThrottle
from rest_framework.views import APIView

from ratelimits.limiter import take
from ratelimits.models import Plan, PlanLimit, Tenant, TenantLimit
from ratelimits.throttling import UserRateThrottle
from tests.commands import Ended, run
from tests.doors import make_plan

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("fresh"),
    pytest.mark.urls(__name__),
]


class Burst(UserRateThrottle):
    scope = "burst"


class Strangers(AnonRateThrottle):
    scope = "strangers"


class Reports(APIView):
    throttle_classes = [ScopedRateThrottle]
    throttle_scope = "reports"


urlpatterns = [url("reports", Reports.as_view())]
RATES = {"anon": "100/day", "user": "20000/day", "reports": "5/hour", "none": None}


@pytest.fixture
def drf(settings: Any) -> Any:
    def rates(*kinds: type, **rates: str | None) -> Ended:
        settings.REST_FRAMEWORK = {
            "DEFAULT_THROTTLE_RATES": rates or RATES,
            "DEFAULT_THROTTLE_CLASSES": [f"{__name__}.{kind.__name__}" for kind in kinds],
        }
        return run("ratelimits_import", "--drf")

    return rates


def limits() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {plan.slug: [] for plan in Plan.objects.order_by("slug")}
    for row in PlanLimit.objects.select_related("plan").order_by("name"):
        found[row.plan.slug].append(f"{row.name} {row.rate} {row.scope} {row.algorithm}")
    return found


def test_the_rates_of_drf(drf: Any) -> None:
    ended = drf()
    assert (ended.code, ended.err) == (0, "")
    assert limits() == {
        "anonymous": ["anon 100/d  sliding_log", "reports 5/h reports sliding_log"],
        "default": ["reports 5/h reports sliding_log", "user 20000/d  sliding_counter"],
    }
    assert Plan.objects.get(is_default=True).slug == "default"
    assert Plan.objects.get(is_anonymous=True).slug == "anonymous"
    assert take("user:1", scope="reports").outcomes[0].limit.quota == 5


def test_a_second_time_nothing(drf: Any) -> None:
    drf()
    before = limits()
    ended = drf()
    assert ended.out == "Nothing to change: all of it is there.\n"
    assert limits() == before


def test_what_was_edited_since_stays_but_for_rates(drf: Any) -> None:
    drf()
    PlanLimit.objects.filter(name="anon").update(mode="shadow", rate="7/d", burst=None)
    PlanLimit.objects.filter(name="reports").update(scope="", algorithm="token_bucket", burst=3)
    ended = drf()
    assert '~ plan "anonymous", limit "anon": rate 7/d -> 100/d' in ended.out
    assert "1 change made." in ended.out
    assert PlanLimit.objects.get(name="anon").mode == "shadow"
    assert set(PlanLimit.objects.filter(name="reports").values_list("scope", "burst")) == {("", 3)}


def test_the_plans_that_there_are_get_the_limits(drf: Any) -> None:
    plan = make_plan("api 10/d")
    Plan.objects.filter(pk=plan.pk).update(is_anonymous=True)
    drf()
    assert set(limits()) == {"free"}
    assert [each.split()[0] for each in limits()["free"]] == ["anon", "api", "reports", "user"]


def test_a_plan_of_that_name_that_is_not_the_default_becomes_it(drf: Any) -> None:
    Plan.objects.create(slug="default", name="Kept")
    drf()
    assert Plan.objects.get(slug="default").is_default
    assert Plan.objects.get(slug="default").name == "Kept"


def test_scopes_of_throttles_for_all_requests_are_no_scopes(drf: Any) -> None:
    drf(Burst, Strangers, burst="60/min", strangers="9/min", user="5/day")
    assert limits() == {
        "anonymous": ["strangers 9/m  sliding_log"],
        "default": ["burst 60/m  sliding_log", "user 5/d  sliding_log"],
    }


def test_without_rates_for_strangers_there_is_no_plan_for_them(drf: Any) -> None:
    drf(user="5/day", reports="1/min")
    assert set(limits()) == {"default"}


def test_scopes_that_no_view_has_are_told_of(drf: Any) -> None:
    ended = drf(burst="60/min", reports="1/min")
    assert ended.code == 0
    assert "burst: no view has this" in ended.err and "reports" not in ended.err


def test_rates_that_are_none_stop_all(drf: Any) -> None:
    ended = drf(anon="100/day", user="ten/day", reports="9/month", other="5/fortnight", odd=5)
    assert ended.code == 2
    assert [line.partition(":")[0] for line in ended.err.splitlines()] == ["REST_FRAMEWORK"] * 4
    assert "'user'" in ended.err and "9/30d" in ended.err
    assert not Plan.objects.exists()


@pytest.mark.parametrize("rate", ["10000000000000/day", "-1/day"])
def test_rates_that_nothing_can_count_by(drf: Any, rate: str) -> None:
    ended = drf(user=rate)
    assert ended.code == 2
    assert f"DEFAULT_THROTTLE_RATES['user']: '{rate}' is not a rate" in ended.err


def test_no_rates_at_all_are_a_fault(drf: Any) -> None:
    ended = drf(anon=None)
    assert ended.code == 2 and "no rate" in ended.err


@pytest.fixture
def customers(tmp_path: Path) -> Any:
    make_plan("requests 60/m")
    pro = Plan.objects.create(slug="pro", name="Pro")
    PlanLimit.objects.create(plan=pro, name="requests", rate="600/m", mode="shadow")
    PlanLimit.objects.create(plan=pro, name="search", rate="5/m", scope="search")

    def importing(text: str, *options: str) -> Ended:
        (tmp_path / "customers.csv").write_text(text, encoding="utf-8")
        return run("ratelimits_import", "--csv", str(tmp_path / "customers.csv"), *options)

    return importing


LIST = '''key,name,plan,rate:requests,rate:search
user:7,Acme,pro,,7/m
user:8,"Bakery, ""old""",pro,1200/m,

user:9,Größe,,unlimited,
'''


def rows() -> list[Any]:
    tenants = Tenant.objects.order_by("key").values_list("key", "name", "plan__slug")
    own = TenantLimit.objects.order_by("tenant__key", "name")
    return [
        *tenants,
        *(f"{o.tenant.key} {o.name} {o.rate} {o.scope} {o.mode} {o.replaces}" for o in own),
    ]


def test_customers(customers: Any) -> None:
    ended = customers(LIST)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.endswith("6 changes made.\n")
    assert rows() == [
        ("user:7", "Acme", "pro"),
        ("user:8", 'Bakery, "old"', "pro"),
        ("user:9", "Größe", None),
        "user:7 search 7/m search enforce pro/search 5/m",
        "user:8 requests 1200/m  shadow pro/requests 600/m",
        "user:9 requests unlimited  enforce free/requests 60/m",
    ]


@pytest.mark.parametrize(("mark", "end"), [("\ufeff", "\n"), ("", "\r\n")])
def test_as_spreadsheets_write_it(customers: Any, mark: str, end: str) -> None:
    assert customers(mark + LIST.replace("\n", end)).out.endswith("6 changes made.\n")
    again = customers("key;plan\nuser:7;pro\n")
    assert again.out == "Nothing to change: all of it is there.\n"


@pytest.mark.parametrize(
    "text",
    [
        "key,plan,,\r\nuser:7,pro,,\r\n,,,\r\n",
        "key,plan\nuser:7,pro,\n",
        "key\tplan\nuser:7\tpro\n",
        "key, plan , rate: search\nuser:7,pro,\n",
    ],
)
def test_columns_and_cells_that_spreadsheets_add(customers: Any, text: str) -> None:
    ended = customers(text)
    assert (ended.code, ended.err) == (0, "")
    assert rows() == [("user:7", "", "pro")]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_other_encodings_are_told_of_by_line(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "customers.csv"
    file.write_bytes("key,name\nuser:7,Acme\nuser:9,Größe\n".encode(encoding))
    ended = run("ratelimits_import", "--csv", str(file))
    line = 3 if encoding == "latin-1" else 1
    assert ended.code == 2 and f"customers.csv: line {line}: this is not UTF-8" in ended.err
    assert rows() == []


def test_the_standard_input_is_utf_8_whatever_the_terminal_is(
    customers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = TextIOWrapper(BytesIO("\ufeffkey,name\nuser:9,Größe\n".encode()), encoding="latin-1")
    monkeypatch.setattr("sys.stdin", given)
    assert run("ratelimits_import", "--csv", "-").code == 0
    assert rows() == [("user:9", "Größe", None)]


def test_a_limit_that_the_plan_has_not_is_told_of(customers: Any) -> None:
    """It would be one more, and not the plan's at another rate."""
    ended = customers("key,plan,rate:request\nuser:7,pro,5/m\nuser:8,,6/m\n")
    assert ended.code == 0
    assert ended.err == (
        'rate:request: 2 tenants get one limit more, since their plans have no limit "request". '
        'Did you mean "requests"?\n'
    )
    again = customers("key,plan,rate:request\nuser:7,pro,7/m\n")
    assert again.code == 0 and again.err == ""


def test_a_limit_of_other_plans_is_of_their_scope(customers: Any) -> None:
    """Or else a rate for searching would hold for everything."""
    PlanLimit.objects.filter(name="search").update(mode="shadow")
    ended = customers("key,rate:search\nuser:9,7/m\n")
    assert ended.err == (
        'rate:search: 1 tenant gets one limit more, since its plan has no limit "search".\n'
    )
    assert rows()[1:] == ["user:9 search 7/m search enforce "]


def test_own_limits_that_have_expired_are_told_of(customers: Any) -> None:
    customers(LIST)
    TenantLimit.objects.filter(name="search").update(expires_at=timezone.now())
    ended = customers(LIST, "--json")
    assert json.loads(ended.out)["changes"] == []
    (hint,) = json.loads(ended.out)["hints"]
    assert hint.startswith("1 own limit of these has expired")


def test_customers_a_second_time_nothing(customers: Any) -> None:
    customers(LIST)
    before = rows()
    assert customers(LIST).out == "Nothing to change: all of it is there.\n"
    assert rows() == before


def test_the_next_take_obeys(customers: Any) -> None:
    assert take("user:8").outcomes[0].limit.quota == 60
    customers(LIST)
    assert take("user:8").outcomes[0].limit.quota == 1200
    customers("key,rate:requests\nuser:8,9/m\n")
    assert take("user:8").outcomes[0].limit.quota == 9


def test_columns_that_are_missing_change_nothing(customers: Any) -> None:
    customers(LIST)
    customers("plan,key\n,user:7\n")
    assert rows()[0] == ("user:7", "Acme", None)
    customers("key,name\nuser:8,Baker\n")
    assert rows()[1] == ("user:8", "Baker", "pro")
    assert len(rows()) == 6


def test_what_it_changes_is_told(customers: Any) -> None:
    customers(LIST)
    TenantLimit.objects.filter(name="search").update(mode="off", reason="asked for it")
    ended = customers("key,rate:search\nuser:7,8/m\n")
    assert ended.out.splitlines()[0] == '~ tenant "user:7", own limit "search": rate 7/m -> 8/m'
    (own,) = TenantLimit.objects.filter(name="search")
    assert (own.mode, own.reason) == ("off", "asked for it")


def test_what_it_replaces_is_told_anew(customers: Any) -> None:
    customers(LIST)
    PlanLimit.objects.filter(name="search").update(rate="6/m")
    customers("key,rate:search\nuser:7,8/m\n")
    (own,) = TenantLimit.objects.filter(name="search")
    assert own.replaces == "pro/search 6/m"


def test_a_rate_of_the_only_limit(customers: Any) -> None:
    assert customers("key,plan,rate\nuser:7,free,5/m\nuser:8,,6/m\nuser:9,pro,\n").code == 0
    assert [str(each) for each in rows()[3:]] == [
        "user:7 requests 5/m  enforce free/requests 60/m",
        "user:8 requests 6/m  enforce free/requests 60/m",
    ]
    ended = customers("key,plan,rate\nuser:9,pro,5/m\n")
    assert ended.code == 2 and "line 2: its plan has 2 limits" in ended.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", ['line 1: the column "key" is missing.']),
        ("key,plann\n", ['line 1: there is no column "plann". Did you mean "plan"?']),
        ("key,qqqq\n", ['line 1: there is no column "qqqq". There is']),
        ("key,rate:\n", ['line 1: there is no column "rate:".']),
        ("key,key\nuser:7,user:7\n", ['line 1: the column "key" is there more than once.']),
        ("key,plan\nuser:7,prro\n", ['line 2: there is no plan "prro". Did you mean "pro"?']),
        ("key,plan\nuser:7\n", ["line 2: 1 cells, but the first line names 2"]),
        ("key,plan,\nuser:7,pro,x\n", ["line 2: 3 cells, but the first line names 2"]),
        ("key,rate:a,rate: a\nuser:7,1/m,2/m\n", ['the column "rate:a" is there more than']),
        ("key\nuser:7\n\nuser:7\n", ['line 4: the key "user:7" was in a line before.']),
        ("key,name\n,Acme\n", ['line 2: tenant ""']),
        ("key\n" + "x" * 256 + "\n", ["line 2: tenant"]),
        ("key,rate:api\nuser:7,ten/m\n", ['own limit "api", rate: "ten/m" is not a rate']),
        ("key\na\0b\n", ["line 2"]),
        ('key,name\nuser:7,"x\n', ["line 2: unexpected end of data"]),
        ("key,plan\nuser:7,x\nuser:8,y\n", ['line 2: there is no plan "x"', "line 3"]),
    ],
)
def test_bad_lists_change_nothing(customers: Any, text: str, told: list[str]) -> None:
    ended = customers(text)
    assert ended.code == 2 and "customers.csv: " in ended.err
    for each in told:
        assert each in ended.err
    assert rows() == []
    good = "key,plan\nuser:1,pro\n"
    assert customers(good + text.partition("\n")[2]).code in (0, 2)


def test_no_such_file(customers: Any) -> None:
    ended = run("ratelimits_import", "--csv", "/nowhere/customers.csv")
    assert ended.code == 2 and "/nowhere/customers.csv" in ended.err


def test_a_dry_run_and_json(customers: Any) -> None:
    ended = customers(LIST, "--dry-run", "--json")
    assert ended.code == 0 and rows() == []
    told = json.loads(ended.out)
    assert (told["format"], told["dry_run"], told["hints"]) == (1, True, [])
    assert told["changes"][:2] == [
        {
            "action": "add",
            "path": ["tenants", "user:7"],
            "fields": {"name": [None, "Acme"], "plan": [None, "pro"]},
        },
        {
            "action": "add",
            "path": ["tenants", "user:7", "limits", "search"],
            "fields": {"rate": [None, "7/m"], "scope": [None, "search"]},
        },
    ]
    assert customers(LIST, "--dry-run").out.count("\n") == 6


def test_the_history_tells(customers: Any) -> None:
    User.objects.create_user("maria")
    customers("key,name\nuser:7,Acne\n")
    customers(LIST, "--user", "maria")
    entries = LogEntry.objects.order_by("object_repr")
    assert [entry.object_repr for entry in entries] == [
        "Acme (user:7)",
        'Bakery, "old" (user:8)',
        "Größe (user:9)",
    ]
    assert "Changed name and plan." in entries[0].get_change_message()
    assert "Added limit of a tenant" in entries[0].get_change_message()
    assert run("ratelimits_import", "--drf", "--user", "nobody").code == 2


def test_many_take_few_queries(customers: Any, django_assert_max_num_queries: Any) -> None:
    lines = "".join(f"user:{number},pro,9/m\n" for number in range(1200))
    with django_assert_max_num_queries(60):
        assert customers(f"key,plan,rate:requests\n{lines}").code == 0
    assert TenantLimit.objects.count() == 1200
    with django_assert_max_num_queries(60):
        assert customers(f"key,plan,rate:requests\n{lines.replace('9/m', '8/m')}").code == 0
    assert take("user:700").outcomes[0].limit.quota == 8
