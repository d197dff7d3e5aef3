"""What ratelimits_export prints, ratelimits_apply takes back."""

from __future__ import annotations

import io
import sys
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from ratelimits.models import Plan, PlanLimit, ScopeCost, ServiceLimit, Tenant
from ratelimits.plan_files import reading
from ratelimits.plan_files.kinds import KINDS, SECTIONS
from ratelimits.plan_files.reading import _type, read
from ratelimits.plan_files.writing import _quoted
from tests.commands import Ended, run
from tests.fresh import forget_everything

# Whatever a database holds: no surrogates, no NUL.
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
NAMES = TEXTS.filter(lambda text: text.strip() != "" and text.isprintable())
RATES = st.sampled_from(["10/s", "100 per hour", "unlimited", "0/m", "5/3d"])
SLUGS = st.text("abcXYZ019-_", min_size=1, max_size=8)


def limits(**more: Any) -> Any:
    return st.fixed_dictionaries(
        {
            "rate": RATES,
            "scope": st.just("") | NAMES,
            "mode": st.sampled_from(["enforce", "shadow", "off"]),
            **more,
        }
    )


SOLD = limits(
    algorithm=st.sampled_from(["token_bucket", "fixed_window", "sliding_log", "sliding_counter"]),
    on_store_failure=st.sampled_from(["", "local", "allow", "deny"]),
)
PLANS = st.fixed_dictionaries(
    {"name": NAMES, "description": TEXTS, "limits": st.dictionaries(NAMES, SOLD, max_size=3)}
)
SERVICE = limits(per=st.sampled_from(["everyone", "address"]))


def applied(text: str, *options: str) -> Ended:
    with patch.object(sys, "stdin", io.StringIO(text)):
        return run("ratelimits_apply", "-", *options)


def rows() -> Any:
    sold = PlanLimit.objects.order_by("plan__slug", "name")
    return (
        list(Plan.objects.order_by("slug").values(*PLAN_FIELDS)),
        list(sold.values("plan__slug", *LIMIT_FIELDS, "algorithm", "on_store_failure")),
        list(ServiceLimit.objects.order_by("name").values(*LIMIT_FIELDS, "per")),
        list(ScopeCost.objects.order_by("scope").values("scope", "cost", "reason")),
    )


PLAN_FIELDS = ("slug", "name", "description", "is_default", "is_anonymous")
LIMIT_FIELDS = ("name", "rate", "burst", "scope", "mode")


class TestRoundTrip(TestCase):
    def tearDown(self) -> None:
        forget_everything()

    @settings(max_examples=25)
    @given(
        st.dictionaries(SLUGS, PLANS, max_size=3),
        st.dictionaries(NAMES, SERVICE, max_size=2),
        st.dictionaries(NAMES, st.integers(0, 9), max_size=2),
    )
    def test_any_rows(
        self, plans: dict[str, Any], service: dict[str, Any], costs: dict[str, int]
    ) -> None:
        ScopeCost.objects.bulk_create(ScopeCost(scope=s, cost=cost) for s, cost in costs.items())
        for number, (slug, said) in enumerate(plans.items()):
            own = {**said}
            sold = own.pop("limits")
            plan = Plan.objects.create(slug=slug, is_default=number == 0, **own)
            PlanLimit.objects.bulk_create(
                PlanLimit(plan=plan, name=name, **values) for name, values in sold.items()
            )
        ServiceLimit.objects.bulk_create(
            ServiceLimit(name=name, **values) for name, values in service.items()
        )
        before, text = rows(), run("ratelimits_export").out
        assert applied(text, "--diff", "--prune").code == 0
        Plan.objects.all().delete()
        ServiceLimit.objects.all().delete()
        ScopeCost.objects.all().delete()
        assert applied(text, "--prune").code == 0
        assert rows() == before
        assert run("ratelimits_export").out == text


@given(TEXTS)
def test_any_text(text: str) -> None:
    toml: Any = reading.tomllib  # type: ignore[attr-defined]
    assert toml.loads(f"x = {_quoted(text)}") == {"x": text}
    assert toml.loads(f"{_quoted(text)} = 1") == {text: 1}


@pytest.mark.django_db
def test_what_is_exported() -> None:
    """Says all that differs from what is so anyway, names each section, and no tenant."""
    plan = Plan.objects.create(slug="free", name="Free")
    plan.limits.create(name="a.b", rate="10 per minute", burst=3)
    Tenant.objects.create(key="acme", plan=plan)
    assert run("ratelimits_export").out == (
        "# manage.py ratelimits_apply takes this file back.\n"
        "\n"
        "[plans]\n"
        "\n"
        "[plans.free]\n"
        'name = "Free"\n'
        "\n"
        '[plans.free.limits."a.b"]\n'
        'rate = "10 per minute"\n'
        "burst = 3\n"
        "\n"
        "[service_limits]\n"
        "\n"
        "[scope_costs]\n"
    )


def test_every_field_of_a_model_can_be_said() -> None:
    """Whatever fields the models get, files know them and what they are in TOML."""
    for kind in [*KINDS, *(inner for kind in KINDS if (inner := kind.inner))]:
        for field in kind.fields.values():
            assert _type(field)[0] in (bool, int, str), field
        related = {kind.owner} if kind.owner else set()
        told = {kind.key, *kind.fields, *related, "id"}
        assert {field.name for field in kind.model._meta.concrete_fields} == told


def test_sections_that_are_not_there() -> None:
    assert read("").sections == set()
    assert read("[plans]").sections == {"plans"}
    assert set(SECTIONS) >= {"plans", "service_limits", "scope_costs"}
