"""What the server itself spends on a take: how many one core of Redis can serve."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.bench import Bench
from benchmarks.ours import CACHE_GET, bare_script, cache_get, takes
from benchmarks.table import Row, exact, microseconds
from benchmarks.timing import Subject, undisturbed

GET = f"that for {CACHE_GET}"


def rows(bench: Bench) -> Iterator[Row]:
    with undisturbed((0, bench.server.pid)):
        base, _ = _own_time(bench, cache_get())
        for subject in (bare_script(), *takes()):
            each, script = _own_time(bench, subject)
            text = f"{microseconds(each)}, {1e6 / each:,.0f} a second and core"
            note = f"the script itself {script:.1f} us, the rest is the network's"
            yield Row(f"Redis's own time: {subject.name}", text, exact(each / base), GET, note=note)


def _own_time(bench: Bench, subject: Subject) -> tuple[float, float]:
    """Microseconds of a core that the server uses for each call, and for its script alone."""
    client, calls = bench.server.client(), bench.count(20_000, 200)
    for _ in range(calls // 10):
        subject.call()
    client.config_resetstat()
    before = client.info("cpu")
    for _ in range(calls):
        subject.call()
    after = client.info("cpu")
    used = sum(after[name] - before[name] for name in ("used_cpu_sys", "used_cpu_user"))
    script = client.info("commandstats").get("cmdstat_evalsha", {"usec_per_call": 0.0})
    return used / calls * 1e6, float(script["usec_per_call"])
