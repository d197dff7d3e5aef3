"""A project with ATOMIC_REQUESTS, as processes of the tests run it."""

from __future__ import annotations

import time
from contextlib import suppress

from django.contrib.auth.models import Group
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path

from ratelimits.decorators import ratelimit
from ratelimits.limiter import charge, peek
from ratelimits.models import Plan


class Broken(Exception):
    """What the view raises when told to."""


@ratelimit()
def order(request: HttpRequest) -> HttpResponse:
    """Is charged, writes, is charged again and takes its time, in one transaction."""
    if "name" in request.GET:
        Group.objects.create(name=request.GET["name"])
    charge("acme", cost=2)
    time.sleep(float(request.GET.get("seconds", 0)))
    if "broken" in request.GET:
        raise Broken
    return HttpResponse()


def tenant_of(request: HttpRequest) -> str | None:
    # Reading is what begins a transaction in earnest.
    return "acme" if Group.objects.count() < 100 else None


urlpatterns = [path("order", order)]


def prepare(index: int) -> None:
    """The tables, and a plan for everyone."""
    from .shared import migrate

    migrate(index)
    plan = Plan.objects.create(slug="free", name="Free", is_default=True)
    plan.limits.create(name="api", rate="100/w")


def ask(index: int, pauses: list[float], queries: list[str]) -> float:
    """One request of each process, after a pause. Returns how long the answer took."""
    # The first one of a process also connects, and reads the limits.
    peek("acme")
    time.sleep(pauses[index])
    started = time.monotonic()
    with suppress(Broken):
        Client().get(f"/order?{queries[index]}")
    return time.monotonic() - started


def used_and_written(index: int) -> list[object]:
    (outcome,) = peek("acme").outcomes
    return [100 - outcome.remaining, list(Group.objects.values_list("name", flat=True))]
