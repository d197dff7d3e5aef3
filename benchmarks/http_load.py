"""Load over HTTP: by wrk where it is installed, or by threads of this process."""

from __future__ import annotations

import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPConnection
from itertools import chain
from pathlib import Path

from .bench import CALLERS

WRK = shutil.which("wrk")
BY = "by wrk" if WRK else "by threads of Python, as wrk is not installed"
PERCENTILES = (50.0, 99.0, 99.9)
SCRIPT = f"""
local turn = 0
request = function()
  turn = (turn + 1) % {CALLERS}
  return wrk.format("GET", nil, {{["X-Caller"] = tostring(turn)}})
end
done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format("\\nRESULT %d %d %d %d %d %d\\n", latency:percentile(50),
    latency:percentile(99), latency:percentile(99.9), summary.requests, summary.duration,
    e.connect + e.read + e.write + e.status + e.timeout))
end
"""


@dataclass(frozen=True)
class Load:
    """Microseconds by percentile, and requests a second."""

    percentiles: dict[float, float]
    rate: float


def load(address: str, path: str, connections: int, seconds: int, directory: Path) -> Load:
    """Raises RuntimeError unless every request is answered with a 200."""
    if WRK:
        return _by_wrk(WRK, f"http://{address}{path}", connections, seconds, directory)
    return _by_threads(address, path, connections, seconds)


def _by_wrk(wrk: str, url: str, connections: int, seconds: int, directory: Path) -> Load:
    script = directory / "wrk.lua"
    script.write_text(SCRIPT)
    command = [wrk, "-t1", f"-c{connections}", f"-d{seconds}s", f"-s{script}", url]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    _, _, result = done.stdout.partition("RESULT ")
    *percentiles, requests, duration, errors = map(int, result.split())
    if errors or not requests:
        raise RuntimeError(f"{errors} of {requests} requests for {url} failed:\n{done.stdout}")
    named = dict(zip(PERCENTILES, map(float, percentiles), strict=True))
    return Load(named, requests / (duration / 1e6))


def _by_threads(address: str, path: str, connections: int, seconds: int) -> Load:
    end = time.monotonic() + seconds
    with ThreadPoolExecutor(connections) as pool:
        lists = list(pool.map(lambda _: _requests(address, path, end), range(connections)))
    times = sorted(chain.from_iterable(lists))
    named = {part: times[min(len(times) - 1, int(len(times) * part / 100))] for part in PERCENTILES}
    return Load(named, len(times) / seconds)


def _requests(address: str, path: str, end: float) -> list[float]:
    """How long each request took, on one connection."""
    connection = HTTPConnection(address, timeout=30)
    times: list[float] = []
    while time.monotonic() < end:
        start = time.perf_counter_ns()
        connection.request("GET", path, headers={"X-Caller": str(len(times) % CALLERS)})
        response = connection.getresponse()
        response.read()
        times.append((time.perf_counter_ns() - start) / 1000)
        if response.status != 200:
            raise RuntimeError(f"{path} is answered with a {response.status}")
    connection.close()
    return times
