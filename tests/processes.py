"""Functions run by several real processes at once, for what only happens between processes.

    def hammer(index: int, key: str) -> int: ...        # in any module of the tests

    admitted = run_processes(hammer, 8, "acme", settings={"CACHES": redis_caches(redis_server.url)})

Arguments, settings and results travel as JSON. All processes have imported everything before the
first of them starts, and they see the test database that a test with transaction=True committed to.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

ROOT = Path(__file__).parent.parent


def run_processes(
    target: Callable[..., Any],
    count: int,
    *args: Any,
    settings: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 60,
    meanwhile: Callable[[], None] | None = None,
) -> list[Any]:
    """Call target(index, *args) in each of count processes, and return what they returned.

    `meanwhile` is called here while they run.
    """
    variables = {**os.environ, **child_environment(settings or {}), **(env or {})}
    workers = [Worker(target, index, args, variables) for index in range(count)]
    watchdog = threading.Timer(timeout, kill, [workers])
    watchdog.start()
    try:
        for worker in workers:
            worker.wait_until_ready()
        for worker in workers:
            worker.go()
        with ThreadPoolExecutor(count) as pool:
            results = pool.map(Worker.result, workers)
            if meanwhile is not None:
                meanwhile()
            return list(results)
    finally:
        watchdog.cancel()
        watchdog.join()
        kill(workers)
        for worker in workers:
            worker.close()


def kill(workers: list[Worker]) -> None:
    for worker in workers:
        worker.process.kill()


def child_environment(settings: Mapping[str, Any]) -> dict[str, str]:
    from django.db import connection

    name = connection.settings_dict["NAME"]
    default = {**connection.settings_dict, "NAME": str(name), "TEST": {}}
    return {
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "RATELIMITS_TEST_SETTINGS": json.dumps({"DATABASES": {"default": default}, **settings}),
    }


class Worker:
    def __init__(
        self, target: Callable[..., Any], index: int, args: tuple[Any, ...], env: dict[str, str]
    ) -> None:
        self.name = f"{target.__module__}:{target.__qualname__}"
        self.errors: IO[str] = TemporaryFile("w+")  # noqa: SIM115 (close() does)
        command = [sys.executable, "-m", "tests.processes", self.name, json.dumps([index, *args])]
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=env,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
        )

    def wait_until_ready(self) -> None:
        assert self.process.stdout is not None
        if self.process.stdout.readline() != "ready\n":
            self.fail()

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def result(self) -> Any:
        output, _ = self.process.communicate()
        if self.process.returncode:
            self.fail()
        return json.loads(output)

    def fail(self) -> None:
        code = self.process.wait()
        self.errors.seek(0)
        raise RuntimeError(f"{self.name} ended with {code}:\n{self.errors.read()}")

    def close(self) -> None:
        self.process.communicate()
        self.errors.close()


def main(name: str, arguments: str) -> None:
    """What a worker does."""
    import django

    # Standard output carries the result alone.
    answers, sys.stdout = sys.stdout, sys.stderr
    django.setup()
    module, _, function = name.partition(":")
    target = getattr(importlib.import_module(module), function)
    print("ready", file=answers, flush=True)
    sys.stdin.readline()
    print(json.dumps(target(*json.loads(arguments))), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
