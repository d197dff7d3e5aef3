"""Faults at random while processes take, and what each of them has seen."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from ratelimits.limiter import take
from ratelimits.models import PlanLimit, Tenant
from ratelimits.signals import store_down
from ratelimits.stores import get_store
from tests.servers import RedisServer

from .faults import FAULTS

# Refused now and then, and never.
TENANTS = ("small", "large")
BURST = 60
RATES = (5, 20)
PLANS = {"small": f"{max(RATES)}/s", "large": "10000000/d"}


def taking(index: int, seconds: float) -> dict[str, Any]:
    """Take in turns for so long. What happened, in counts and in seconds."""
    outages, admitted, wrong, times = [], 0, 0, []

    def note(**kwargs: Any) -> None:
        outages.append(time.monotonic())

    store_down.connect(note)
    started = time.monotonic()
    while time.monotonic() - started < seconds:
        for key in TENANTS:
            asked = time.perf_counter()
            decision = take(key)
            times.append(time.perf_counter() - asked)
            if key == "small":
                admitted += decision.allowed
            else:
                wrong += not decision.allowed
        # Nobody learns more from more, and others need the machine.
        time.sleep(0.002)
    ended = time.monotonic()
    times.sort()
    return {
        "admitted": admitted,
        "wrong": wrong,
        # Of which the signal of one may still be on its way.
        "outages": len(outages) + 1,
        "seconds": ended - started,
        "median": times[len(times) // 2],
        "worst": times[-1],
        "came back": came_back(),
    }


def came_back() -> bool:
    store: Any = get_store()
    deadline = time.monotonic() + 10
    while store.breaker.is_open and time.monotonic() < deadline:
        time.sleep(0.02)
    return not store.breaker.is_open


def close_the_store() -> None:
    """Of a test that has edited through it."""
    store: Any = get_store()
    store.store.close()


class Machine:
    """Does harm to a server, in an order that its seed decides."""

    def __init__(self, server: RedisServer, seed: int) -> None:
        self.server = server
        self.chance = random.Random(seed)
        # How often the store has lost what it had counted.
        self.losses = 0
        self.done: list[str] = []

    def run(self, seconds: float) -> None:
        harms: list[Callable[[], None]] = [
            self.stop, self.fill, self.flush_scripts, self.drop, self.kill, self.edit, self.hang_up,
        ]  # fmt: skip
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            harm = self.chance.choice(harms)
            self.done.append(harm.__name__)
            harm()
            self.pause(0.5)

    def pause(self, most: float) -> None:
        time.sleep(self.chance.uniform(0, most))

    def stop(self) -> None:
        self._for_a_while(FAULTS["stopped"](self.server))

    def fill(self) -> None:
        self._for_a_while(FAULTS["out of memory"](self.server))

    def kill(self) -> None:
        """It restarts empty."""
        self.losses += 1
        self._for_a_while(FAULTS["killed"](self.server))

    def _for_a_while(self, fault: AbstractContextManager[Any]) -> None:
        with fault:
            self.pause(1.5)

    def flush_scripts(self) -> None:
        self.server.client().script_flush()

    def drop(self) -> None:
        self.losses += 1
        self.server.flush()

    def hang_up(self) -> None:
        self.server.client().client_kill_filter(_type="normal", skipme=True)

    def edit(self) -> None:
        (limit,) = PlanLimit.objects.filter(plan__slug="small")
        limit.rate = f"{self.chance.choice(RATES)}/s"
        limit.save()
        Tenant.objects.get(key="large").save()
