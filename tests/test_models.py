from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError

from ratelimits.models import Plan, PlanLimit, ScopeCost, ServiceLimit, Tenant, TenantLimit

pytestmark = pytest.mark.django_db


@pytest.fixture
def plan() -> Plan:
    return Plan.objects.create(slug="free", name="Free")


@pytest.fixture
def tenant(plan: Plan) -> Tenant:
    return Tenant.objects.create(key="acme", name="Acme", plan=plan)


def errors_of(model: Any, **values: Any) -> dict[str, list[str]]:
    try:
        model(**values).full_clean(exclude=["plan", "tenant"])
    except ValidationError as error:
        return error.message_dict
    return {}


def errors(rate: str, **values: Any) -> dict[str, list[str]]:
    return errors_of(PlanLimit, **{"name": "n", "rate": rate, **values})


def test_migrations_are_complete() -> None:
    call_command("makemigrations", "ratelimits", check=True, dry_run=True, stdout=StringIO())


def test_defaults(plan: Plan, tenant: Tenant) -> None:
    limit = plan.limits.create(name="n", rate="1/s")
    found = (limit.burst, limit.scope, limit.algorithm, limit.mode, limit.on_store_failure)
    assert found == (None, "", "token_bucket", "enforce", "")
    assert tenant.limits.create(name="n", rate="1/s").expires_at is None
    assert ServiceLimit.objects.create(name="n", rate="1/s").per == "everyone"


@pytest.mark.parametrize("mark", ["is_default", "is_anonymous"])
def test_one_plan_at_most_has_a_mark(mark: str) -> None:
    first = Plan.objects.create(slug="a", name="A", **{mark: True})
    Plan.objects.create(slug="b", name="B")
    first.full_clean()
    found = errors_of(Plan, slug="c", name="C", **{mark: True})
    assert list(found) == [mark]
    assert "already" in found[mark][0]
    with pytest.raises(IntegrityError), transaction.atomic():
        Plan.objects.create(slug="c", name="C", **{mark: True})


def test_a_plan_in_use_cannot_be_deleted(plan: Plan, tenant: Tenant) -> None:
    with pytest.raises(ProtectedError):
        plan.delete()
    tenant.delete()
    plan.delete()
    assert not Plan.objects.exists()


def test_names_are_unique_within_their_owner(plan: Plan, tenant: Tenant) -> None:
    for owner in (plan, tenant):
        owner.limits.create(name="n", rate="1/s")
        double = owner.limits.model(name="n", rate="2/s", **{str(owner._meta.model_name): owner})
        with pytest.raises(ValidationError, match="of this name already"):
            double.full_clean()
        with pytest.raises(IntegrityError), transaction.atomic():
            double.save()


def test_service_limits_have_unique_names() -> None:
    ServiceLimit.objects.create(name="n", rate="1/s")
    assert list(errors_of(ServiceLimit, name="n", rate="1/s")) == ["name"]


@pytest.mark.parametrize(
    "name", ["", "   ", "a\nb", "a\r\nX-Evil: 1", "tab\there", "\x00", "a\x85"]
)
def test_names_that_break_headers_are_refused(name: str) -> None:
    assert list(errors("1/s", name=name)) == ["name"]


@pytest.mark.parametrize("name", ["requests", "per minute", 'Größe "L" €', "日本"])
def test_names_can_be_in_any_language(name: str) -> None:
    assert errors("1/s", name=name) == {}


def test_scopes_are_printable() -> None:
    assert list(errors("1/s", scope="a\nb")) == ["scope"]
    assert errors("1/s", scope="search") == {}


@pytest.mark.parametrize("algorithm", ["token_bucket", "sliding_log", "sliding_counter"])
def test_months_are_for_fixed_windows(algorithm: str) -> None:
    found = errors("5000/month", algorithm=algorithm)
    assert list(found) == ["rate"]
    assert "5000/30d" in found["rate"][0]
    assert errors("5000/month", algorithm="fixed_window") == {}
    assert errors("5000/30d", algorithm=algorithm) == {}


def test_months_are_not_for_the_service() -> None:
    assert list(errors_of(ServiceLimit, name="n", rate="10/month")) == ["rate"]


def test_a_log_has_a_bound() -> None:
    assert errors("10000/d", algorithm="sliding_log") == {}
    found = errors("10001/d", algorithm="sliding_log")
    assert list(found) == ["rate"]
    assert "10000" in found["rate"][0]
    assert errors("10001/d", algorithm="sliding_counter") == {}


@pytest.mark.parametrize("algorithm", ["fixed_window", "sliding_log", "sliding_counter"])
def test_bursts_are_for_buckets(algorithm: str) -> None:
    assert list(errors("10/s", burst=20, algorithm=algorithm)) == ["burst"]
    assert errors("10/s", burst=20) == {}


@pytest.mark.parametrize("burst", [0, -1, 10**12 + 1])
def test_bursts_out_of_range(burst: int) -> None:
    assert list(errors("1000000000000/s", burst=burst)) == ["burst"]


def test_the_smallest_and_the_largest_burst() -> None:
    assert errors("1000000000000/s", burst=1) == {}
    assert errors("1000000000000/s", burst=10**12) == {}


@pytest.mark.parametrize(("rate", "says"), [("unlimited", "unlimited rate"), ("0/m", "rate of 0")])
def test_bursts_that_mean_nothing(rate: str, says: str) -> None:
    found = errors(rate, burst=5)
    assert list(found) == ["burst"]
    assert says in found["burst"][0]
    assert errors(rate) == {}


def test_a_bucket_fills_within_a_year() -> None:
    assert errors("1/d", burst=366) == {}
    assert "366 days" in errors("1/d", burst=367)["burst"][0]


def test_a_bad_rate_is_the_only_error_it_makes() -> None:
    assert list(errors("ten/m", burst=5, algorithm="fixed_window")) == ["rate"]


@pytest.mark.parametrize("field", ["algorithm", "mode", "on_store_failure"])
def test_choices(field: str) -> None:
    assert list(errors("1/s", **{field: "other"})) == [field]


def test_texts(plan: Plan, tenant: Tenant) -> None:
    assert str(plan) == "Free"
    assert str(tenant) == "Acme (acme)"
    assert str(Tenant(key="user:7")) == "user:7"
    limit = PlanLimit(plan=plan, name="n", rate="100/m", burst=20)
    assert limit.describe() == "100 requests per minute, burst 20"
    assert str(limit) == "n: 100 requests per minute, burst 20"
    assert str(ServiceLimit(name="all", rate="1/5m")) == "all: 1 request per 5 minutes"


def test_fixtures_by_natural_keys(plan: Plan, tenant: Tenant, tmp_path: Any) -> None:
    plan.limits.create(name="n", rate="100/m")
    tenant.limits.create(name="n", rate="200/m", reason="contract")
    ServiceLimit.objects.create(name="all", rate="5000/s", per="address")
    ScopeCost.objects.create(scope="search", cost=5)
    path = tmp_path / "plans.json"
    options = {"use_natural_foreign_keys": True, "use_natural_primary_keys": True}
    call_command("dumpdata", "ratelimits", output=str(path), **options)
    assert '"pk"' not in path.read_text()
    for model in (Tenant, Plan, ServiceLimit, ScopeCost):
        model.objects.all().delete()
    # Twice: rows that are there are found by their natural keys.
    for _ in range(2):
        call_command("loaddata", str(path), stdout=StringIO())
    assert PlanLimit.objects.get().plan.slug == "free"
    assert TenantLimit.objects.get().tenant.plan == Plan.objects.get()
    assert ServiceLimit.objects.get().per == "address"
    assert ScopeCost.objects.get().cost == 5
