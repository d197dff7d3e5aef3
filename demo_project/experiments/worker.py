"""One worker of those that ours.py starts: it says when it is ready, and begins when told."""

from __future__ import annotations

import json
import sys
import time

import django
import httpx

from ratelimits.client import upstream

from .http import TIMEOUT
from .ours import Done, Task


class Counting(httpx.HTTPTransport):
    """Counts what is really sent."""

    sent = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.sent += 1
        return super().handle_request(request)


def work(task: Task) -> Done:
    """Make the calls, one after the other, when standard input says so."""
    inner = Counting(verify=False)
    slug = slug_of(task.rate)
    # Loaded and opened here, so that no measured request pays for it.
    httpx.Client(transport=inner).get(f"{task.url}/health")
    with upstream(slug, f"before {task.caller}").slot():
        pass
    inner.sent = 0
    client = httpx.Client(
        transport=upstream(slug, task.caller).transport(inner),
        headers={"X-API-Key": task.caller},
        timeout=TIMEOUT,
    )
    print("ready", flush=True)
    if not sys.stdin.readline():
        sys.exit(1)
    began = time.time()
    for _ in range(task.calls):
        client.get(f"{task.url}/bucket").raise_for_status()
    return Done(inner.sent, began, time.time())


def slug_of(rate: str) -> str:
    return rate.replace("/", "-")


def add_upstream(rate: str) -> None:
    """As an operator would do it in the admin."""
    from ratelimits.models import Upstream

    row, is_new = Upstream.objects.get_or_create(slug=slug_of(rate))
    if is_new:
        row.limits.create(name="calls", rate=rate, kind="bucket")


def main(argument: str) -> None:
    django.setup()
    task = Task(*json.loads(argument))
    add_upstream(task.rate)
    print(json.dumps(work(task)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
