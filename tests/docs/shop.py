"""An empty directory, in which somebody follows the tutorial."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from tests.demo import PATIENCE, ROOT, Site
from tests.docs.samples import Sample
from tests.servers import free_port

# What differs from run to run, and what it becomes.
DIFFERING = [
    (r'("daily";r)=\d+;t=\d+', r"\1"),
    (r";t=\d+", ";t"),
    (r"(Retry-After|-Reset): \d+", r"\1"),
    (r'("reset"|"retry_after"): \d+', r"\1"),
    (r"urn:uuid:[^\"]*", "urn"),
]


class Typed(NamedTuple):
    command: str
    shown: list[str]


def typed(text: str) -> list[Typed]:
    """The commands of a console, each with what is shown below it."""
    found: list[Typed] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append(Typed(line[2:], []))
        elif line:
            found[-1].shown.append(line)
    return found


def alike(lines: list[str]) -> list[str]:
    for pattern, said in DIFFERING:
        lines = [re.sub(pattern, said, line) for line in lines]
    return [line.strip() for line in lines if line.strip()]


class Shop(Site):
    """A project that grows by the samples of a page."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "shop"
        self.directory.mkdir()
        self.port = free_port()
        self.server: subprocess.Popen[bytes] | None = None
        tools = directory / "bin"
        tools.mkdir()
        # As in an environment that is active.
        for name in ("python", "django-admin"):
            words = [sys.executable, *(["-m", "django"] if name == "django-admin" else [])]
            (tools / name).write_text(f'#!/bin/sh\nexec {" ".join(words)} "$@"\n')
            (tools / name).chmod(0o755)
        path = f"{tools}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
        self.environment.pop("DJANGO_SETTINGS_MODULE", None)

    def follow(self, sample: Sample) -> None:
        if sample.language == "python":
            self.write(sample.text)
        for command, shown in typed(sample.text) if sample.language == "console" else ():
            self.type(command, shown)

    def write(self, text: str) -> None:
        """What stands at the end of the settings, or is the whole of another file."""
        first, _, rest = text.partition("\n")
        path = self.directory / first.removeprefix("# ")
        before = path.read_text() if path.name == "settings.py" else ""
        path.write_text(f"{before}\n{rest}")

    def type(self, command: str, shown: list[str]) -> None:
        if command.endswith(" runserver"):
            self.serve()
            return
        command = command.replace("127.0.0.1:8000", f"127.0.0.1:{self.port}")
        done = subprocess.run(
            ["bash", "-c", command.replace("curl ", "curl -sS ")],
            cwd=self.directory,
            env=self.environment,
            text=True,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), command
        printed, expected = alike(done.stdout.splitlines()), alike(shown)
        if command.startswith("curl "):
            # The page leaves out what is not about limits.
            printed = [line for line in printed if line in expected]
        if shown:
            assert printed == expected, f"{command}\n{done.stdout}"

    def serve(self) -> None:
        with (self.directory / "log").open("w") as log:
            self.server = subprocess.Popen(
                [sys.executable, "manage.py", "runserver", "--noreload", str(self.port)],
                cwd=self.directory,
                env=self.environment,
                stdout=log,
                stderr=log,
            )
        end = time.monotonic() + PATIENCE
        while not self.is_serving():
            assert self.server.poll() is None and time.monotonic() < end, self.last_words()

    def is_serving(self) -> bool:
        try:
            return self.request("/nothing").status == 404
        except AssertionError:
            time.sleep(0.05)
            return False

    def last_words(self) -> str:
        return (self.directory / "log").read_text()

    def end(self) -> None:
        if self.server is not None:
            self.server.terminate()
            self.server.wait()
