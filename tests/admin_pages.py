"""All pages that the app has in the admin, found by themselves, each with something on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model
from django.urls import reverse
from django.utils import timezone

from ratelimits import limiter, usage
from ratelimits.client import booking, upstream
from ratelimits.client.gate import credentials_key
from ratelimits.effects import drive
from ratelimits.exceptions import StoreUnavailable
from ratelimits.limits import Decision, Limit, Occasion, Outcome
from ratelimits.models import ModeSwitch, Plan, ScopeCost, ServiceLimit, Tenant, Upstream
from ratelimits.rates import Rate
from ratelimits.receipts import receipt_of

# What people typed, as one sees at once; nobody translates it.
OPEN, CLOSE = "«", "»"
# Pages of Django's own that redirect, or are for its scripts.
NOT_PAGES = re.compile(r"autocomplete|jsi18n|^$")


def typed(text: str) -> str:
    return f"{OPEN}{text}{CLOSE}"


def make_rows() -> None:
    """One row of each model at least, each with a history."""
    free = Plan.objects.create(
        slug="1",
        name=typed("Free"),
        description=typed("To try it."),
        is_default=True,
        is_anonymous=True,
    )
    free.limits.create(name=typed("requests"), rate="100/m", burst=20)
    free.limits.create(name=typed("new"), rate="5/h", scope=typed("search"), mode="shadow")
    free.limits.create(name=typed("log"), rate="9/d", algorithm="sliding_log", mode="off")
    free.limits.create(name=typed("monthly"), rate="9/month", algorithm="fixed_window")
    tenant = Tenant.objects.create(key=typed("acme"), name=typed("Acme"), plan=free)
    tenant.limits.create(
        name=typed("requests"),
        rate="200/m",
        expires_at=timezone.now() + timedelta(hours=5),
        reason=typed("A launch."),
    )
    tenant.limits.create(name=typed("own"), rate="unlimited")
    Tenant.objects.create(key=typed("bakery"))
    ServiceLimit.objects.create(name=typed("everyone"), rate="5000/s")
    ServiceLimit.objects.create(name=typed("address"), rate="50/s", per="address", mode="shadow")
    ScopeCost.objects.create(scope=typed("search"), cost=5, reason=typed("It is slow."))
    vendor = Upstream.objects.create(slug="1", name=typed("Vendor"), guard=0, max_wait=90)
    vendor.limits.create(name=typed("calls"), rate="10/s", burst=20, kind="bucket")
    vendor.limits.create(name=typed("daily"), rate="900/d")
    vendor.limits.create(name=typed("share"), rate="20/s", kind="bucket", per="tenant")
    _ask()
    _call()
    be_busy()
    ModeSwitch.objects.switch("shadow", 3600, by=typed("ann"), reason=typed("A mad client."))
    user = User.objects.create_superuser(typed("operator"), password="secret")
    for model in ours():
        _remember(user, first(model))


def _ask() -> None:
    """Some requests of tenants, and of one that has no row; one is refused."""
    for key, scope, times in (("bakery", "", 25), ("acme", "search", 9), ("nobody", "", 1)):
        for _ in range(times):
            limiter.take(typed(key), scope=typed(scope) if scope else "")
    usage.flush()


def _call() -> None:
    """Calls to somebody else's API with two credentials; one is blocked by an answer."""
    for name in ("one", "two"):
        gate = upstream("1", typed(name)).gate()
        booking.announce(credentials_key("1"), gate.credential)
        drive(gate.enter(5))
        if name == "two":
            for _ in range(3):
                drive(gate.block(3600, typed("429, Retry-After: 3600"), typed("retry-after: 9")))


def be_busy() -> None:
    """Callers with and without a row, allowed, refused, and with a limit in shadow behind them."""
    for key in (typed("acme"), typed("stranger")):
        for _ in range(8):
            limiter.take(key, scope=typed("search"))
    with suppress(StoreUnavailable):
        usage.flush()


def _remember(user: User, row: Model) -> None:
    LogEntry.objects.create(
        user=user,
        content_type=ContentType.objects.get_for_model(row),
        object_id=str(row.pk),
        object_repr=typed(row._meta.object_name or ""),
        action_flag=CHANGE,
        change_message='[{"changed": {"fields": ["name"]}}]',
    )


def ours() -> list[type[Model]]:
    """The models that have pages, in the order of their names."""
    registered = [model for model in admin.site._registry if model._meta.app_label == "ratelimits"]
    return sorted(registered, key=lambda model: model._meta.label)


def first(model: type[Model]) -> Model:
    """The row that a model's pages are opened for."""
    row = model._default_manager.order_by("pk").first()
    assert row is not None, f"make_rows() makes no {model.__name__}"
    return row


# How a page's address is completed, by the names of its parts.
PARTS: dict[str, Callable[[str], Any]] = {
    "app_label": lambda name: "ratelimits",
    "object_id": lambda name: first(_model_of(name)).pk,
}


def _pages() -> Iterator[tuple[str, list[str]]]:
    """The name of each page, Django's own included, and the parts of its address."""
    yield "admin:index", []
    yield "admin:app_list", ["app_label"]
    for model in ours():
        for pattern in admin.site._registry[model].get_urls():
            if not NOT_PAGES.search(pattern.name or ""):
                yield f"admin:{pattern.name}", list(pattern.pattern.converters)


PAGES = dict(_pages())


def address(name: str) -> str:
    """Where a page is, for the rows of make_rows()."""
    return reverse(name, kwargs={part: PARTS[part](name) for part in PAGES[name]})


# What pages answer to a form that changes nothing yet: the page, and what is posted to it.
POSTED: dict[str, tuple[str, Callable[[], dict[str, Any]]]] = {
    "found": ("tenant_find", lambda: {"key": typed("nobody")}),
    "found with a row": ("tenant_find", lambda: {"key": typed("acme")}),
    "unknown credential": ("tenant_find", lambda: {"credential": typed("secret")}),
    "nothing to find": ("tenant_find", dict),
    "reset of one without a row": ("tenant_reset_found", lambda: {"key": typed("nobody")}),
    "receipt": ("receipt", lambda: {"receipt": _receipt()}),
    "no receipt": ("receipt", lambda: {"receipt": typed("lost")}),
    "wrong raise": ("tenant_raise", lambda: {"rate": typed("ten")}),
    "wrong move": ("plan_move", dict),
    "reset of some": ("tenant_changelist", lambda: _selected("reset_selected")),
    "move of some": ("tenant_changelist", lambda: _selected("move_selected")),
    "a credential": (
        "upstream_look",
        lambda: {"credential": typed("two"), "customer": typed("acme")},
    ),
    "no credential": ("upstream_look", dict),
    "lift of a block": (
        "upstream_lift",
        lambda: {"digest": upstream("1", typed("two")).gate().credential},
    ),
    "wrong switch": ("modeswitch_add", lambda: {"mode": "off"}),
}


def posted(name: str) -> tuple[str, dict[str, Any]]:
    """Where a form is sent, and what is in it."""
    page, data = POSTED[name]
    return address(f"admin:ratelimits_{page}"), data()


def _receipt() -> str:
    outcome = Outcome(Limit(typed("requests"), Rate.parse("100/m")), False, 0, 10**6, 10**6, 1)
    occasion = Occasion(typed("acme"), "192.0.2.1", typed("search"), typed("/api"), True)
    return receipt_of(Decision((outcome,), occasion=occasion))


def _selected(action: str) -> dict[str, Any]:
    keys = Tenant.objects.values_list("pk", flat=True)
    return {"action": action, "_selected_action": [str(key) for key in keys]}


def _model_of(name: str) -> type[Model]:
    return next(model for model in ours() if f"_{model._meta.model_name}_" in name)
