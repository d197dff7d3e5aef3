"""Times of several things, measured in turns: what disturbs one disturbs its neighbours too."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from statistics import median

# A batch of one subject: so short that the machine is as busy for the next one.
BATCH = 8_000_000
# Calls between two looks at the clock take at least this long, so that the look costs nothing.
BUNCH = 20_000
FEWEST_ROUNDS = 5
# The first calls connect, compile and fill caches.
WARM_UP = 200
# Priorities above that of ordinary processes: for one core, and for all of them.
AHEAD = -15
ALL_AHEAD = -5


@dataclass(frozen=True)
class Subject:
    """Something to time. `around` prepares each batch, and is not timed itself.

    `calls` is how many of what is measured one call makes.
    """

    name: str
    call: Callable[[], object]
    around: Callable[[], AbstractContextManager[object]] = nullcontext
    calls: int = 1


@dataclass(frozen=True)
class Spread:
    """A median, and the quartiles around it."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Times:
    """Microseconds a call, by subject: one median for each round."""

    by_name: dict[str, list[float]]

    def of(self, name: str) -> Spread:
        return spread(self.by_name[name])

    def ratio(self, name: str, base: str, less: str | None = None) -> Spread:
        """How many times the base it takes (with `less`: takes more than that), round by round."""
        mine, bases = self.by_name[name], self.by_name[base]
        without = self.by_name[less] if less else [0.0] * len(mine)
        return spread([(a - c) / b for a, b, c in zip(mine, bases, without, strict=True)])


def spread(values: Sequence[float]) -> Spread:
    ordered = sorted(values)
    last = len(ordered) - 1
    return Spread(median(ordered), ordered[round(last * 0.25)], ordered[round(last * 0.75)])


def race(subjects: Sequence[Subject], seconds: float, pids: Sequence[int] = ()) -> Times:
    """Time all subjects, in rounds, for so many seconds; on one core with the processes `pids`."""
    times: dict[str, list[float]] = {subject.name: [] for subject in subjects}
    with undisturbed((0, *pids)), frozen_garbage():
        plans = [(subject, *_plan(subject)) for subject in subjects]
        end = time.monotonic() + seconds
        turn = 0
        while turn < FEWEST_ROUNDS or time.monotonic() < end:
            start = turn % len(plans)
            for subject, samples, bunch in plans[start:] + plans[:start]:
                times[subject.name].append(_batch(subject, samples, bunch))
            turn += 1
    return Times(times)


def _plan(subject: Subject) -> tuple[int, int]:
    """How many samples a batch has, and how many calls a sample."""
    with subject.around():
        _sample(subject.call, max(1, WARM_UP // subject.calls))
        each = max(1, min(_sample(subject.call, 10) for _ in range(3)) // 10)
    bunch = max(1, BUNCH // each)
    return max(5, BATCH // (each * bunch)), bunch


def _batch(subject: Subject, samples: int, bunch: int) -> float:
    call = subject.call
    with subject.around():
        _sample(call, 2)
        taken = [_sample(call, bunch) for _ in range(samples)]
    return median(taken) / bunch / subject.calls / 1000


def _sample(call: Callable[[], object], times: int) -> int:
    start = time.perf_counter_ns()
    for _ in range(times):
        call()
    return time.perf_counter_ns() - start


@contextmanager
def undisturbed(pids: Sequence[int]) -> Iterator[None]:
    """Keep processes on one core and ahead of all others, where the system allows; 0 is this one.

    On one core, since waking another one takes longer than a whole call, and differs each time.
    """
    with ExitStack() as undo, ahead(AHEAD, pids):
        for pid in pids:
            with suppress(AttributeError, PermissionError):
                undo.callback(os.sched_setaffinity, pid, os.sched_getaffinity(pid))
                os.sched_setaffinity(pid, {max(os.sched_getaffinity(pid))})
        yield


@contextmanager
def ahead(priority: int, pids: Sequence[int] = (0,)) -> Iterator[None]:
    """Processes, and those that they start meanwhile, come before others, where that is allowed."""
    with ExitStack() as undo:
        for pid in pids:
            with suppress(AttributeError, PermissionError):
                before = os.getpriority(os.PRIO_PROCESS, pid)
                os.setpriority(os.PRIO_PROCESS, pid, priority)
                undo.callback(os.setpriority, os.PRIO_PROCESS, pid, before)
        yield


@contextmanager
def frozen_garbage() -> Iterator[None]:
    """The collector stays on, but does not go through what was there before."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
