"""What a project with schemas does, in processes of its own. See ../test_schemas.py."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client, override_settings
from django_tenants.utils import get_tenant_domain_model, get_tenant_model, schema_context
from psycopg import Cursor

from ratelimits.limiter import peek, take
from ratelimits.models import Plan, PlanLimit, StoreRow
from ratelimits.stores import database
from tests.demo import PATIENCE
from tests.doors import left
from tests.fresh import PATIENT

SCHEMAS = ("public", "acme", "bakery")


def prepare(index: int) -> dict[str, list[str]]:
    """Make schemas, and users who have the same primary key in each. The schemas of our tables."""
    call_command("migrate_schemas", "--shared", verbosity=0)
    for name in SCHEMAS:
        customer = get_tenant_model()(schema_name=name)
        customer.save(verbosity=0)
        domains().create(domain=f"{name}.example", tenant=customer)
    for name in SCHEMAS:
        with schema_context(name):
            User.objects.create_superuser("ada", pk=1, password="ada")
    plan = Plan.objects.create(slug="free", name="Free", is_default=True)
    PlanLimit.objects.create(plan=plan, name="api", rate="10/d")
    found: dict[str, list[str]] = {}
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename, schemaname FROM pg_tables WHERE tablename ~ '^ratelim'")
        for table, schema in cursor.fetchall():
            found.setdefault(table, []).append(schema)
    return found


def domains() -> Any:
    return get_tenant_domain_model().objects


def browser(schema: str, is_known: bool = False) -> Client:
    client = Client(HTTP_HOST=f"{schema}.example")
    if is_known:
        with schema_context(schema):
            client.force_login(User.objects.get())
    return client


def call(index: int) -> dict[str, Any]:
    """Who is counted where."""
    told: dict[str, Any] = {name: [] for name in SCHEMAS}
    for name in (*SCHEMAS, "acme"):
        told[name].append(left(browser(name).get("/page"))["api"])
    told["keys"] = [peek(f"schema:{name}").outcomes[0].remaining for name in SCHEMAS]
    with override_settings(RATELIMITS=PATIENT):
        known = [browser(name, is_known=True).get("/page") for name in ("acme", "bakery")]
        told["users"] = [left(response)["api"] for response in known]
    assert StoreRow.objects.exists()
    return told


def administer(index: int) -> dict[str, int]:
    """The status of a page of ours, and of the admin itself, for a superuser of each schema."""
    told = {}
    for name in SCHEMAS:
        client = browser(name, is_known=True)
        for url in ("/admin/", "/admin/ratelimits/plan/"):
            told[f"{name} {url}"] = client.get(url).status_code
    return told


def without_public(index: int) -> dict[str, Any]:
    """A schema's connection that can't see the shared tables."""
    first = take("schema:acme").outcomes[0].remaining
    connection.set_schema("acme", include_public=False)  # type: ignore[attr-defined]
    known = take("schema:acme").outcomes[0].remaining
    unknown = take("schema:nobody")
    return {"known": first - known, "unknown": (unknown.allowed, len(unknown.outcomes))}


def edit_or_obey(index: int) -> list[int]:
    """The first process serves a customer, and the second one edits the plan meanwhile."""
    if index:
        _wait_for(lambda: domains().filter(domain="warm.example").exists())
        PlanLimit.objects.all().delete()
        PlanLimit.objects.create(plan=Plan.objects.get(), name="api", rate="20/d")
        domains().filter(domain="warm.example").update(domain="edited.example")
        return []
    client = browser("acme")
    quotas = [_quota(client)]
    domains().create(
        domain="warm.example", tenant=get_tenant_model().objects.get(schema_name="acme")
    )
    _wait_for(lambda: domains().filter(domain="edited.example").exists())
    return [*quotas, _quota(client)]


def _quota(client: Client) -> int:
    return int(client.get("/page").headers["RateLimit-Limit"])


def _wait_for(is_there: Callable[[], bool]) -> None:
    connection.set_schema_to_public()  # type: ignore[attr-defined]
    deadline = time.monotonic() + PATIENCE
    while not is_there():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def statements(index: int) -> dict[str, int]:
    """How many a take sends to PostgreSQL, by the setting of django-tenants."""
    told = {}
    execute, here, sent = Cursor.execute, threading.get_ident(), list[Any]()

    def counting(*args: Any, **kwargs: Any) -> Any:
        # Usage is written meanwhile, by a thread of its own.
        if threading.get_ident() == here:
            sent.append(args)
        return execute(*args, **kwargs)

    for is_limited in (False, True):
        with override_settings(TENANT_LIMIT_SET_CALLS=is_limited):
            take("schema:acme")
            sent.clear()
            with (
                patch.object(Cursor, "execute", counting),
                # One take in so many also deletes what has expired.
                patch.object(database, "SWEEP_EVERY", math.inf),
            ):
                take("schema:acme")
            told[str(is_limited)] = len(sent)
    return told
