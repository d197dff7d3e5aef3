"""Clients that others wrote understand what we say, and succeed by doing as they are told.

Each makes 40 calls at a limit of 10 per second, from which 40 can't pass in less than 3 seconds.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import urllib3
from httpx_retries import Retry, RetryTransport

from tests.demo import PATIENCE, Demo

CALLS = 40
# Less a little, since two clocks are compared.
LEAST = 2.9
# From one refusal to the next a client that waited as told has a full bucket of 10.
MOST_REFUSED = 3
PAGE = Path(__file__).parents[2] / "docs" / "neighbours.md"
PARSER = "structured-headers@2"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    demo = Demo(tmp_path_factory.mktemp("demo"))
    yield demo
    demo.end()


def needed(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed")
    return found


def curl(url: str, folder: Path) -> Counter[int]:
    """The statuses of all answers, also of those after which it tried again."""
    headers = folder / "headers"
    command = [needed("curl"), "-sS", "--fail", "--retry", "5", "-H", "X-API-Key: curl"]
    command += ["-o", "/dev/null", "-D", str(headers), f"{url}?call=[1-{CALLS}]"]
    subprocess.run(command, check=True, timeout=PATIENCE)
    return Counter(map(int, re.findall(r"^HTTP/\S+ (\d+)", headers.read_text(), re.MULTILINE)))


def urllib3s(url: str, folder: Path) -> Counter[int]:
    seen: Counter[int] = Counter()
    with urllib3.PoolManager(retries=urllib3.Retry(5, respect_retry_after_header=True)) as pool:
        for _ in range(CALLS):
            response = pool.request("GET", url, headers={"X-API-Key": "urllib3"})
            seen[response.status] += 1
            history = response.retries.history if response.retries else ()
            seen.update(before.status for before in history if before.status)
    return seen


class Watched(httpx.HTTPTransport):
    """Notes each answer, before the transport around it does anything about it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Counter[int] = Counter()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        self.seen[response.status_code] += 1
        return response


def httpx_retries(url: str, folder: Path) -> Counter[int]:
    watched = Watched()
    transport = RetryTransport(watched, Retry(total=5, max_backoff_wait=86400))
    with httpx.Client(transport=transport, timeout=PATIENCE) as client:
        for _ in range(CALLS):
            client.get(url, headers={"X-API-Key": "httpx-retries"}).raise_for_status()
    return watched.seen


def node(url: str, folder: Path) -> dict[str, Any]:
    """What Node was told; its script and the parser are in the folder from now on."""
    install(folder)
    told: dict[str, Any] = json.loads(run_node(folder, "obey.mjs", url, str(CALLS)))
    return told


def install(folder: Path) -> None:
    needed("node")
    # In this folder, whatever those above it hold.
    command = [needed("npm"), "install", "--prefix", ".", "--prefer-offline", PARSER]
    command += ["--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode:
        pytest.skip(f"npm can't install {PARSER}: {done.stderr.strip()[-200:]}")
    shutil.copy(Path(__file__).with_name("obey.mjs"), folder)


def run_node(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [needed("node"), *words], cwd=folder, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class Ran(NamedTuple):
    told: Any
    seconds: float
    folder: Path


def run(client: Callable[[str, Path], Any], url: str, folder: Path) -> Ran:
    started = time.monotonic()
    return Ran(client(url, folder), time.monotonic() - started, folder)


@pytest.fixture(scope="module")
def runs(demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Any, Future[Ran]]]:
    """All at once, since they mostly wait. One that can't run here is skipped by its own test."""
    clients = (curl, urllib3s, httpx_retries, node)
    url = f"http://127.0.0.1:{demo.port}/bucket"
    with ThreadPoolExecutor(len(clients)) as pool:
        yield {
            client: pool.submit(run, client, url, tmp_path_factory.mktemp("client"))
            for client in clients
        }


@pytest.mark.parametrize("client", [curl, urllib3s, httpx_retries])
def test_what_was_refused_is_sent_again(runs: dict[Any, Future[Ran]], client: Any) -> None:
    """Retry-After says when; no client is told anything but to obey it."""
    statuses, seconds, _ = runs[client].result()
    assert set(statuses) <= {200, 429}
    assert statuses[200] == CALLS
    assert statuses[429] <= MOST_REFUSED
    assert seconds > LEAST


def test_node(runs: dict[Any, Future[Ran]]) -> None:
    told, seconds, _ = runs[node].result()
    for answer in (*told["ahead"], *told["insisting"]):
        understood(answer)
    # Whoever reads what is left need not be refused at all.
    assert Counter(answer["status"] for answer in told["ahead"]) == {200: CALLS}
    insisting = Counter(answer["status"] for answer in told["insisting"])
    assert insisting[200] == CALLS
    # 30, 20 and 10, and a few whose timers go off early.
    assert 0 < insisting[429] <= 2 * CALLS
    assert seconds > LEAST


def understood(answer: dict[str, Any]) -> None:
    """Each field as another's parser reads it."""
    assert answer["policies"] == [["bucket", {"q": 10, "w": 1}]]
    ((name, left),) = answer["limits"]
    assert (name, set(left)) == ("bucket", {"r", "t"})
    if answer["status"] == 200:
        assert answer["wait"] is None and 0 <= left["r"] < 10
        return
    assert answer["body"]["violated-policies"] == [name]
    assert (left["r"], left["t"]) == (0, 1)
    assert int(answer["wait"]) == answer["body"]["retry_after"] == 1


def test_the_page_reads_it_rightly(demo: Demo, runs: dict[Any, Future[Ran]]) -> None:
    """What docs/neighbours.md shows for Node, on a refusal."""
    folder = runs[node].result().folder
    (shown,) = re.findall(r"```js\n(.*?)```", PAGE.read_text(), re.DOTALL)
    refused = f"""
        let response;
        while (response?.status !== 429) {{
          const url = "http://127.0.0.1:{demo.port}/bucket?caller=page";
          const calls = Array.from({{ length: 20 }}, () => fetch(url));
          response = (await Promise.all(calls)).find((each) => each.status === 429);
        }}
    """
    (folder / "page.mjs").write_text(f"{refused}\n{shown}\nconsole.log(wait);")
    assert run_node(folder, "page.mjs") == "1\n"
