from __future__ import annotations

import json
from typing import Any

import pytest
from django.core import serializers
from django.core.exceptions import ValidationError
from django.core.serializers.base import DeserializationError
from django.db import transaction
from django.db.models import Case, F, Value, When
from django.forms import modelform_factory

from ratelimits.fields import BadRate, RateField
from ratelimits.models import Plan, PlanLimit
from ratelimits.rates import Rate

pytestmark = pytest.mark.django_db

# What people typed into fields such as this one.
BAD_TEXTS = ["ten/m", "10/", "/m", "10/0s", "-1/m", "10/m/m", "1e9/s", "10/5months", "10"]
LimitForm = modelform_factory(PlanLimit, fields=["name", "rate", "algorithm", "mode"])


@pytest.fixture
def plan() -> Plan:
    return Plan.objects.create(slug="free", name="Free")


@pytest.fixture
def limit(plan: Plan) -> PlanLimit:
    return plan.limits.create(name="requests", rate="100/m")


@pytest.fixture
def bad(limit: PlanLimit) -> PlanLimit:
    PlanLimit.objects.update(rate="ten/m")
    return PlanLimit.objects.get(pk=limit.pk)


def form_data(rate: str) -> dict[str, str]:
    return {"name": "n", "rate": rate, "algorithm": "token_bucket", "mode": "enforce"}


def test_text_reads_as_a_rate_at_once(plan: Plan) -> None:
    limit = PlanLimit(plan=plan, name="n", rate="10/5m")
    assert limit.rate == Rate(10, 300)
    limit.rate = "100 per hour"
    assert limit.rate == Rate(100, 3600)


def test_a_row_reads_as_a_rate_and_keeps_its_text(limit: PlanLimit) -> None:
    limit.rate = "100 per hour"
    limit.save()
    loaded = PlanLimit.objects.get()
    assert loaded.rate == Rate(100, 3600)
    assert str(loaded.rate) == "100 per hour"


def test_a_rate_can_be_assigned(limit: PlanLimit) -> None:
    limit.rate = Rate(7, 90)
    limit.save()
    assert PlanLimit.objects.get().rate == Rate(7, 90)
    assert PlanLimit.objects.filter(rate="7/90s").exists()


def test_refreshing_reads_a_rate(limit: PlanLimit) -> None:
    PlanLimit.objects.update(rate="5/s")
    limit.refresh_from_db()
    assert limit.rate == Rate(5, 1)


def test_a_deferred_rate_is_read_when_asked_for(limit: PlanLimit) -> None:
    assert PlanLimit.objects.defer("rate").get().rate == Rate(100, 60)


def test_saving_does_not_fetch_a_deferred_rate(
    limit: PlanLimit, django_assert_num_queries: Any
) -> None:
    deferred = PlanLimit.objects.only("name").get()
    deferred.name = "other"
    with django_assert_num_queries(1):
        deferred.save()
    assert PlanLimit.objects.get().name == "other"


def test_values_are_rates(limit: PlanLimit) -> None:
    assert PlanLimit.objects.values_list("rate", flat=True).get() == Rate(100, 60)


def test_lookups_take_text_or_rate(limit: PlanLimit) -> None:
    assert PlanLimit.objects.filter(rate="100/m").get() == limit
    assert PlanLimit.objects.filter(rate=Rate.parse("100/m")).get() == limit
    assert PlanLimit.objects.filter(rate__in=["1/s", Rate(100, 60)]).get() == limit
    assert PlanLimit.objects.filter(rate__endswith="/m").get() == limit
    assert not PlanLimit.objects.filter(rate="100/h").exists()


def test_update_takes_text_rate_or_expression(limit: PlanLimit) -> None:
    PlanLimit.objects.update(rate=Rate(1, 1))
    assert PlanLimit.objects.get().rate == Rate(1, 1)
    PlanLimit.objects.update(
        rate=Case(When(name="requests", then=Value("2/s", RateField())), default=F("rate"))
    )
    assert PlanLimit.objects.get().rate == Rate(2, 1)


def test_an_expression_can_be_saved(limit: PlanLimit) -> None:
    limit.rate = Value("3/s")
    limit.save()
    assert PlanLimit.objects.get().rate == Rate(3, 1)


def test_bulk_update_takes_rates(limit: PlanLimit) -> None:
    limit.rate = Rate(9, 3600)
    PlanLimit.objects.bulk_update([limit], ["rate"])
    assert PlanLimit.objects.get().rate == Rate(9, 3600)


def test_a_bad_row_reads_without_an_error(bad: PlanLimit) -> None:
    assert isinstance(bad.rate, BadRate)
    assert bad.rate == "ten/m"
    assert '"ten/m"' in bad.rate.reason
    assert "ten/m" in str(bad)


def test_a_bad_row_is_found_by_its_text(bad: PlanLimit) -> None:
    assert PlanLimit.objects.filter(rate="ten/m").get() == bad


def test_other_fields_of_a_bad_row_can_be_saved(bad: PlanLimit) -> None:
    bad.mode = "off"
    bad.save(update_fields=["mode"])
    assert PlanLimit.objects.get().mode == "off"


@pytest.mark.parametrize("text", [*BAD_TEXTS, ""])
def test_bad_text_is_not_saved(plan: Plan, text: str) -> None:
    with pytest.raises(ValidationError) as caught:
        plan.limits.create(name="n", rate=text)
    assert "rate" in caught.value.message_dict
    # The transaction around it is whole, so that a view can answer with the error.
    assert not PlanLimit.objects.exists()


def test_bad_text_is_not_saved_in_bulk(plan: Plan) -> None:
    limits = [PlanLimit(plan=plan, name="n", rate="ten/m")]
    with pytest.raises(ValidationError, match="ten/m"), transaction.atomic():
        PlanLimit.objects.bulk_create(limits)
    assert not PlanLimit.objects.exists()


@pytest.mark.parametrize("text", BAD_TEXTS)
def test_full_clean_quotes_bad_text(plan: Plan, text: str) -> None:
    with pytest.raises(ValidationError) as caught:
        PlanLimit(plan=plan, name="n", rate=text).full_clean()
    assert list(caught.value.message_dict) == ["rate"]
    (message,) = caught.value.message_dict["rate"]
    assert f'"{text}"' in message
    assert '"100/m" or "10/5m"' in message


def test_full_clean_leaves_a_rate(plan: Plan) -> None:
    limit = PlanLimit(plan=plan, name="n", rate=" 10/m ")
    limit.full_clean()
    assert limit.rate == Rate(10, 60)


def test_a_rate_longer_than_the_column_is_an_error(plan: Plan) -> None:
    text = "1" + " " * 60 + "/m"
    limit = PlanLimit(plan=plan, name="n", rate=Rate(1, 60, text))
    with pytest.raises(ValidationError) as caught:
        limit.full_clean()
    assert "at most 50 characters" in str(caught.value)


@pytest.mark.parametrize("text", BAD_TEXTS)
def test_forms_say_it_beside_the_field(text: str) -> None:
    form = LimitForm(form_data(text))
    assert list(form.errors) == ["rate"]
    assert text in form.errors.as_json()


def test_forms_ask_for_a_rate() -> None:
    assert list(LimitForm(form_data("")).errors) == ["rate"]


def test_forms_show_the_text_and_see_no_change_in_it(limit: PlanLimit) -> None:
    assert 'value="100/m"' in LimitForm(instance=limit).as_p()
    data = {**form_data("100/m"), "name": "requests"}
    assert not LimitForm(data, instance=limit).has_changed()
    assert LimitForm({**data, "rate": "99/m"}, instance=limit).changed_data == ["rate"]


def test_forms_show_the_text_of_a_bad_row(bad: PlanLimit) -> None:
    assert 'value="ten/m"' in LimitForm(instance=bad).as_p()


def test_fixtures_keep_the_text(limit: PlanLimit) -> None:
    dumped = serializers.serialize("json", PlanLimit.objects.all())
    assert json.loads(dumped)[0]["fields"]["rate"] == "100/m"
    PlanLimit.objects.update(rate="1/s")
    for item in serializers.deserialize("json", dumped):
        item.save()
    assert PlanLimit.objects.get().rate == Rate(100, 60)


def test_bad_fixtures_are_refused(limit: PlanLimit) -> None:
    dumped = serializers.serialize("json", PlanLimit.objects.all()).replace("100/m", "ten/m")
    with pytest.raises(DeserializationError, match="ten/m"):
        list(serializers.deserialize("json", dumped))


def test_it_can_be_deconstructed() -> None:
    _, path, args, kwargs = RateField("rate", help_text="x").deconstruct()
    assert (path, args) == ("ratelimits.fields.RateField", [])
    assert kwargs == {"verbose_name": "rate", "help_text": "x", "max_length": 50}
