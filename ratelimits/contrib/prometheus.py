"""For prometheus_client: metrics of the limits, updated off the path of requests.

One line turns them on, in the `ready()` of one of your apps:

    ratelimits.contrib.prometheus.start()
"""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock
from typing import Any

from ratelimits.extras import lacking

try:
    from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Metric
    from prometheus_client.registry import Collector
except ModuleNotFoundError as error:
    raise lacking(error, "prometheus") from error

from ratelimits.signals import store_down, store_up
from ratelimits.stores import get_store
from ratelimits.stores.guarded import GuardedStore
from ratelimits.stores.usage_entries import OTHERS, split_label
from ratelimits.tallies import faults, reloads
from ratelimits.texts import gettext as _
from ratelimits.usage.lines import ALLOWED, REFUSED, SHADOW, TOTAL
from ratelimits.usage.recorder import recorder
from ratelimits.usage.sums import Totals

OUTCOMES = {"allowed": ALLOWED, "refused": REFUSED, "shadow": SHADOW}
# Pairs of a limit and a scope that are told apart; tenants may have limits of any name.
MOST_LINES = 200

_started: dict[str, Metrics] = {}
_starting = Lock()


def start(registry: CollectorRegistry = REGISTRY) -> None:
    """Keep metrics in a registry from now on; again does nothing.

    Raises ValueError if they are kept in another registry already.
    """
    with _starting:
        before = _started.get("metrics")
        if before is None:
            metrics = _started["metrics"] = Metrics(registry)
            metrics.begin()
        elif before.registry is not registry:
            raise ValueError("The metrics of the rate limits are in another registry already.")


class Metrics:
    """Counters and gauges of this process. Labels are bounded: no caller is in them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.totals = Totals()
        self._lock = Lock()
        self._lines: set[str] = set()
        # What was told of, and then turned out otherwise: counters can't go back.
        self._ahead: dict[tuple[Counter, tuple[str, ...]], int] = {}
        # Registered first, so that the others are up to date when they are asked.
        registry.register(_Update(self))
        self._make_counters(registry)
        self._make_gauges(registry)

    def _make_counters(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"ratelimits_{name}", text, labels, registry=registry)

        self.requests = counter("requests", _("Requests that were counted."), "outcome")
        self.decisions = counter(
            "decisions", _("What each limit made of requests."), "limit", "scope", "outcome"
        )
        self.takes = counter(
            "takes", _("Takes, by who decided: the store or the process."), "source", "status"
        )
        self.store_errors = counter("store_errors", _("Calls of the store that failed."), "kind")
        self.reloads = counter("catalog_reloads", _("Reads of limits from the database."), "what")

    def _make_gauges(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, text: str, mode: Any) -> Gauge:
            return Gauge(f"ratelimits_{name}", text, registry=registry, multiprocess_mode=mode)

        self.store_up = gauge("store_up", _("Whether every process asks the store."), "livemin")
        self.breakers = gauge("breaker_open", _("Processes that go without the store."), "livesum")
        self.processes = gauge("processes", _("Processes that share the limits."), "livemax")
        self.queue = gauge("usage_queue", _("Takes and callers to be written."), "livesum")
        # Until somebody finds out otherwise.
        self.store_up.set(1)

    def begin(self) -> None:
        """Hear of what is counted from now on."""
        recorder.totals = self.totals
        recorder.when_counted = self.update
        for signal in (store_down, store_up):
            signal.connect(self._flipped, weak=False, dispatch_uid="ratelimits.prometheus")

    def end(self) -> None:
        """Hear of nothing any more."""
        recorder.totals = recorder.when_counted = None
        for signal in (store_down, store_up):
            signal.disconnect(dispatch_uid="ratelimits.prometheus")

    def _flipped(self, **kwargs: Any) -> None:
        with self._lock:
            self._set_gauges()

    def update(self) -> None:
        """Add what was counted since the last time."""
        recorder.count()
        with self._lock:
            lines, takes = self.totals.changes()
            for label, numbers in lines.items():
                self._add_line(label, numbers)
            for (source, status), count in takes.items():
                self.takes.labels(source, str(status)).inc(count)
            for kind, count in faults.changes().items():
                self.store_errors.labels(kind).inc(count)
            for what, count in reloads.changes().items():
                self.reloads.labels(what).inc(count)
            self._set_gauges()

    def _add_line(self, label: str, numbers: list[int]) -> None:
        for outcome, place in OUTCOMES.items():
            if not numbers[place]:
                continue
            if label == TOTAL:
                self._add(self.requests, (outcome,), numbers[place])
            else:
                limit, scope = split_label(self._bounded(label))
                self._add(self.decisions, (limit, scope, outcome), numbers[place])

    def _bounded(self, label: str) -> str:
        if label not in self._lines and len(self._lines) >= MOST_LINES:
            return OTHERS
        self._lines.add(label)
        return label

    def _add(self, counter: Counter, labels: tuple[str, ...], count: int) -> None:
        count -= self._ahead.pop((counter, labels), 0)
        if count < 0:
            self._ahead[counter, labels] = -count
        else:
            counter.labels(*labels).inc(count)

    def _set_gauges(self) -> None:
        self.queue.set(recorder.queue)
        store = get_store()
        if isinstance(store, GuardedStore):
            is_open = store.breaker.is_open
            self.store_up.set(not is_open)
            self.breakers.set(is_open)
            self.processes.set(store.processes.number)


class _Update(Collector):
    """Has no metrics of its own. Not asked where processes share files: see docs/metrics.md."""

    def __init__(self, metrics: Metrics) -> None:
        self.metrics = metrics

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterable[Metric]:
        self.metrics.update()
        return ()
