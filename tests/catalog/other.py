"""Another real process, which edits and takes when it is told to."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Mapping
from typing import Any

from tests.processes import Worker, child_environment

Left = dict[str, tuple[int, int]]


class Other:
    """Answers one request at a time; requests and answers are lines of JSON."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        environment = {**os.environ, **child_environment(settings)}
        self.worker = Worker(serve, 0, (), environment)
        self.watchdog = threading.Timer(120, self.worker.process.kill)
        self.watchdog.daemon = True

    def __enter__(self) -> Other:
        self.watchdog.start()
        self.worker.wait_until_ready()
        self.worker.go()
        return self

    def __exit__(self, *exc: object) -> None:
        try:
            # The end of its input is the end of it.
            self.worker.result()
        finally:
            self.watchdog.cancel()
            self.watchdog.join()
            self.worker.process.kill()
            self.worker.close()

    def ask(self, name: str, *args: Any) -> Any:
        """Have it call a function of ALL, and wait for what it returns."""
        process = self.worker.process
        assert process.stdin is not None
        assert process.stdout is not None
        print(json.dumps([name, *args]), file=process.stdin, flush=True)
        answer = process.stdout.readline()
        if not answer:
            self.worker.fail()
        return json.loads(answer)


def serve(index: int) -> None:
    from .edits import ALL

    for line in sys.stdin:
        name, *args = json.loads(line)
        # The harness keeps standard output for answers.
        print(json.dumps(ALL[name](*args)), file=sys.__stdout__, flush=True)
