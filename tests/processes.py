"""Functions run by several real processes at once, for what only happens between processes.

    def hammer(index: int, key: str) -> int: ...        # in any module of the tests

    admitted = run_processes(hammer, 8, "acme", settings={"CACHES": redis_caches(redis_server.url)})

    with crowd(8, settings) as processes:               # the same ones, asked several times
        admitted = processes.run(hammer, "acme")

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
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NoReturn

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

    `meanwhile` is called here while they run. All of them have ended when it returns.
    """
    with crowd(count, settings, env) as processes:
        return processes.run(target, *args, timeout=timeout, meanwhile=meanwhile)


@contextmanager
def crowd(
    count: int,
    settings: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
) -> Iterator[Crowd]:
    """Processes that are asked more than once: to start one takes half a second of a core."""
    variables = {**os.environ, **child_environment(settings or {}), **(env or {})}
    workers = [Worker(variables) for _ in range(count)]
    try:
        yield Crowd(workers)
        for worker in workers:
            worker.end()
    finally:
        kill(workers)
        for worker in workers:
            worker.close()


class Crowd:
    def __init__(self, workers: list[Worker]) -> None:
        self.workers = workers

    def run(
        self,
        target: Callable[..., Any],
        *args: Any,
        count: int | None = None,
        timeout: float = 60,
        meanwhile: Callable[[], None] | None = None,
    ) -> list[Any]:
        """Call target(index, *args) in all processes at once, or in the first count of them."""
        workers = self.workers[:count]
        watchdog = threading.Timer(timeout, kill, [workers])
        watchdog.start()
        try:
            for index, worker in enumerate(workers):
                worker.prepare(target, [index, *args])
            for worker in workers:
                worker.wait_until_ready()
            for worker in workers:
                worker.tell("go")
            with ThreadPoolExecutor(len(workers)) as pool:
                results = pool.map(Worker.result, workers)
                if meanwhile is not None:
                    meanwhile()
                return list(results)
        finally:
            watchdog.cancel()
            watchdog.join()


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
    def __init__(self, env: dict[str, str]) -> None:
        self.name = "a process that was asked nothing yet"
        self.errors: IO[str] = TemporaryFile("w+")  # noqa: SIM115 (close() does)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.processes"],
            cwd=ROOT,
            env=env,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
        )

    def prepare(self, target: Callable[..., Any], args: list[Any]) -> None:
        self.name = f"{target.__module__}:{target.__qualname__}"
        self.tell(json.dumps([self.name, args]))

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            self.fail()

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline() or self.fail()

    def wait_until_ready(self) -> None:
        assert self.hear() == "ready\n", "a function of a worker wrote to where answers go"

    def result(self) -> Any:
        return json.loads(self.hear())

    def end(self) -> None:
        """Nothing more is asked, whereupon it ends as processes do."""
        self.process.communicate()
        if self.process.returncode:
            self.fail()

    def fail(self) -> NoReturn:
        code = self.process.wait()
        self.errors.seek(0)
        raise RuntimeError(f"{self.name} ended with {code}:\n{self.errors.read()}")

    def close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout, self.errors):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()
        self.process.wait()


def main() -> None:
    """What a worker does."""
    import django

    # Standard output carries answers alone.
    answers, sys.stdout = sys.stdout, sys.stderr
    django.setup()
    for line in sys.stdin:
        name, arguments = json.loads(line)
        module, _, function = name.partition(":")
        target = getattr(importlib.import_module(module), function)
        print("ready", file=answers, flush=True)
        sys.stdin.readline()
        print(json.dumps(target(*arguments)), file=answers, flush=True)


if __name__ == "__main__":
    main()
