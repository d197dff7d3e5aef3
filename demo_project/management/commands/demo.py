"""Serves the demo, from whatever there is: an empty checkout, or the database of last time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from demo_project import data
from demo_project.serving import (
    HOST,
    THREADS,
    Stopping,
    bundled_valkey,
    listen,
    serve,
    stop,
    wait_until_ready,
)
from demo_project.settings import REDIS_URL
from demo_project.tenants import KEYS
from ratelimits.models import Tenant

READY = "Serving at"


class Command(BaseCommand):
    help = "Make the demo's database if there is none, serve the demo, and say what to try."
    # They need the database, which is made here.
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=int, default=8000, help="0 is any free one.")
        parser.add_argument(
            "--workers",
            type=int,
            default=1,
            help="Processes. Several count in the Redis at REDIS_URL, or in the bundled Valkey.",
        )

    def handle(self, *, port: int, workers: int, **options: Any) -> None:
        if workers < 1:
            raise CommandError("At least one worker has to serve.")
        listener = listen(port)
        with listener, Stopping() as stopping, counting(workers) as (env, place):
            port = listener.getsockname()[1]
            call_command("migrate", verbosity=0)
            is_new = data.create()
            process = serve(listener, workers, env)
            try:
                wait_until_ready(port)
                self._say_what_to_try(f"http://{HOST}:{port}", is_new)
                self.stdout.write(
                    f"{workers} x {THREADS} threads, counting in {place}. Ctrl-C ends it."
                )
                self.stdout.flush()
                code = stopping.wait_for(process)
            finally:
                stop(process)
        if code is not None:
            raise CommandError(f"The server ended by itself, with {code}.")
        self.stdout.write("Stopped.")

    def _say_what_to_try(self, root: str, is_new: bool) -> None:
        password = data.admin_password()
        known = f"{data.ADMIN} / {password}" if password else "with the password you chose"
        origin = "new" if is_new else "as you left it"
        receipt = f"{root}/admin/ratelimits/tenant/receipt/"
        search = f"curl -i '{root}/api/search?q=tea' -H 'X-API-Key: {KEYS['acme']}'"
        lines = [
            self.style.SUCCESS(f"{READY} {root}/"),
            f"  the database is {origin}: {settings.DATABASES['default']['NAME']}",
            "",
            "Try this eleven times, quickly:",
            f"  {search}",
            f"Have the last answer explained, by pasting it: {receipt}",
            f"Edit a limit of the plan Free, and try again: {root}/admin/ ({known})",
            "Compare algorithms, at /fixed, /sliding, /bucket and /global:",
            f"  for i in $(seq 20); do curl -so /dev/null -w '%{{http_code}} ' {root}/fixed; done",
            "  manage.py experiments",
            "",
            "Tenants, to be sent as X-API-Key:",
            *(f"  {KEYS[t.key]:<20} {_plan(t)}" for t in _tenants() if t.key in KEYS),
            "",
        ]
        self.stdout.write("\n".join(lines))


def _tenants() -> Iterator[Tenant]:
    yield from Tenant.objects.select_related("plan").order_by("pk")


def _plan(tenant: Tenant) -> str:
    return f"plan {tenant.plan}" if tenant.plan else "no plan, so the default one"


@contextmanager
def counting(workers: int) -> Iterator[tuple[dict[str, str], str]]:
    """The environment of the workers, and in words where they count."""
    if REDIS_URL:
        _require_redis(REDIS_URL)
        yield dict(os.environ), "the Redis at REDIS_URL"
    elif workers == 1:
        yield dict(os.environ), "the worker's memory"
    else:
        with bundled_valkey() as url:
            yield {**os.environ, "REDIS_URL": url}, f"the bundled Valkey ({url})"


def _require_redis(url: str) -> None:
    """Raises CommandError. The limiter itself would go on without, which here explains nothing."""
    import redis

    try:
        with redis.Redis.from_url(url) as client:
            client.ping()
    except (redis.RedisError, ValueError) as error:
        raise CommandError(f"REDIS_URL names no Redis that answers: {error}") from error
