"""The process's own memory as the store, as on a developer's machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from django.test import override_settings

from benchmarks import peers
from benchmarks.bench import Bench
from benchmarks.ours import ONE, cache_get, takes
from benchmarks.table import Row, goal, timed
from benchmarks.timing import Subject

LOCMEM = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
CACHES = {name: {**LOCMEM, "LOCATION": name} for name in ("default", "logs")}
GET = "one LocMemCache get()"
DRF = "DRF UserRateThrottle in memory"


def rows(bench: Bench) -> Iterator[Row]:
    with override_settings(CACHES=CACHES):
        ours = takes()
        times = bench.race([cache_get(GET), *ours, Subject(DRF, peers.drf(), peers.emptied)])
    for subject in ours:
        what = f"{subject.name}, in memory"
        row = timed(times, subject.name, GET, what=what, note="headers built")
        if subject.name == ONE:
            value = times.of(subject.name).median
            row = replace(row, goal=goal("under", 10, value, "us"))
        yield row
    yield timed(times, DRF, GET, note="its log short")
