"""Callers of a vendor in processes of their own, which note each request that they send."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from itertools import chain
from typing import Any, NamedTuple

import httpx
import requests
from requests.adapters import HTTPAdapter

from ratelimits.client import RetryLater, upstream
from ratelimits.client.requests import RateLimitAdapter
from tests.fresh import PATIENT
from tests.processes import run_processes
from tests.servers import RedisServer
from tests.settings import redis_caches

TIMEOUT = 30
# The longest run, on the slowest machine.
PATIENCE = 240


class Sent(NamedTuple):
    """One request. Moments of the wall clock, which all processes and the vendor share.

    `asked` is when it was sent, `arrived` when the vendor began with it, `answered` when its
    answer was here, which `told` to wait for so many seconds.
    """

    worker: int
    asked: float
    arrived: float
    answered: float
    status: int
    told: float


class Run(NamedTuple):
    """So many calls of each worker to one path of the vendor, under a name that is ours there."""

    slug: str
    path: str
    name: str
    calls: int
    library: str = "requests"


def crowd(
    server: RedisServer, url: str, workers: int, runs: Sequence[Run], **options: Any
) -> list[dict[str, Any]]:
    """What the workers of a project, who share a Redis, say that they did."""
    limits = {**PATIENT, **options.pop("limits", {})}
    settings = {"CACHES": redis_caches(server.url), "RATELIMITS": limits}
    return run_processes(call, workers, url, runs, settings=settings, timeout=PATIENCE, **options)


def sent_of(told: Sequence[dict[str, Any]], place: int = 0) -> list[Sent]:
    """What all workers sent in one of their runs, in the order of its arrival."""
    all_of_them = chain.from_iterable(worker["sent"][place] for worker in told)
    return sorted((Sent(*one) for one in all_of_them), key=lambda one: one.arrived)


def call(worker: int, url: str, runs: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Make the calls of several runs at once. Gives what was sent, and the seconds that it took."""
    began, used = time.monotonic(), time.process_time()
    with ThreadPoolExecutor(len(runs)) as pool:
        sent = list(pool.map(lambda run: _calls(worker, url, Run(*run)), runs))
    seconds, cpu = time.monotonic() - began, time.process_time() - used
    return {"sent": sent, "seconds": seconds, "cpu": cpu}


def _calls(worker: int, url: str, run: Run) -> list[Sent]:
    sent: list[Sent] = []

    def note(asked: float, status: int, headers: Any) -> None:
        arrived = float(headers["X-Demo-Clock"].split()[0])
        told = float(headers.get("Retry-After", 0))
        sent.append(Sent(worker, asked, arrived, time.time(), status, told))

    with CLIENTS[run.library](run, note) as get:
        for _ in range(run.calls):
            insist(lambda: get(url + run.path))
    return sent


def insist(get: Callable[[], Any]) -> None:
    """Until it passes, as a queue does."""
    while True:
        try:
            status = get().status_code
        except RetryLater as later:
            time.sleep(later.delay)
        else:
            assert status == 200
            return


Note = Callable[[float, int, Any], None]
Get = Callable[[str], Any]


class Noting(HTTPAdapter):
    """Notes what the adapter that inherits from it really sends."""

    note: Note

    def send(self, *args: Any, **options: Any) -> requests.Response:
        asked = time.time()
        response = super().send(*args, **options)
        self.note(asked, response.status_code, response.headers)
        return response


class NotingAdapter(RateLimitAdapter, Noting):
    pass


@contextmanager
def by_requests(run: Run, note: Note) -> Iterator[Get]:
    api = upstream(run.slug, run.name)
    with api.session() as session:
        adapter = NotingAdapter(api)
        adapter.note = note
        session.mount("http://", adapter)
        session.headers["X-API-Key"] = run.name
        yield lambda url: session.get(url, timeout=TIMEOUT)


class NotingTransport(httpx.HTTPTransport):
    def __init__(self, note: Note) -> None:
        # Of no use here, and to read the certificates of all authorities takes long.
        super().__init__(verify=False)
        self.note = note

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        asked = time.time()
        response = super().handle_request(request)
        self.note(asked, response.status_code, response.headers)
        return response


@contextmanager
def by_httpx(run: Run, note: Note) -> Iterator[Get]:
    transport = upstream(run.slug, run.name).transport(NotingTransport(note))
    headers = {"X-API-Key": run.name}
    with httpx.Client(transport=transport, headers=headers, timeout=TIMEOUT) as client:
        yield client.get


CLIENTS: dict[str, Callable[[Run, Note], AbstractContextManager[Get]]] = {
    "requests": by_requests,
    "httpx": by_httpx,
}
