"""The demo as its users start it, and a browser that is good enough for its admin."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from html.parser import HTMLParser
from http.client import HTTPConnection
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

ROOT = Path(__file__).parent.parent
PATIENCE = 60


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: str


class Site:
    """A server on a port of this machine."""

    port: int

    def last_words(self) -> str:
        """What it printed, which may tell why it does not answer."""
        raise NotImplementedError

    def request(
        self, path: str, method: str = "GET", body: str | None = None, **headers: str
    ) -> Answer:
        """One request over a connection of its own, as curl makes it."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            text = response.read().decode()
            return Answer(response.status, _joined(response.getheaders()), text)
        except OSError as error:
            raise AssertionError(f"it does not answer:\n{self.last_words()}") from error
        finally:
            connection.close()


class Demo(Site):
    """`manage.py demo` on a free port, with its database in a folder of the test."""

    def __init__(self, directory: Path, *options: str, **env: str) -> None:
        variables = {**os.environ, "DEMO_DATABASE": str(directory / "demo.sqlite3"), **env}
        variables.pop("DJANGO_SETTINGS_MODULE", None)
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "demo", "--port", "0", *options],
            cwd=ROOT,
            env={"REDIS_URL": "", **variables},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # So that a signal to its group, as Ctrl-C sends it, spares the tests.
            start_new_session=True,
        )
        self.printed = ""
        self._read_until("Ctrl-C ends it.")
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", self.printed)
        assert found is not None, self.printed
        self.port = int(found[1])

    def _read_until(self, end: str) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.printed += line
            if end in line:
                return
        raise AssertionError(f"it ended with {self.process.wait()}:\n{self.printed}")

    def is_gone(self) -> bool:
        """Whether none of the processes of its group is left, which are all that it started."""
        try:
            os.killpg(self.process.pid, 0)
        except ProcessLookupError:
            return True
        return False

    def end(self, number: int = signal.SIGTERM, group: bool = False) -> int:
        """Send a signal and wait; what else was printed is in `printed`."""
        if self.process.poll() is None:
            (os.killpg if group else os.kill)(self.process.pid, number)
        output, _ = self.process.communicate(timeout=PATIENCE)
        self.printed += output or ""
        return self.process.returncode

    def last_words(self) -> str:
        """What it printed, which may tell why it ended by itself."""
        code = self.end()
        return f"{self.printed}\n(ended with {code})"


def _joined(headers: list[tuple[str, str]]) -> dict[str, str]:
    joined: dict[str, str] = {}
    for name, value in headers:
        joined[name] = f"{joined[name]}\n{value}" if name in joined else value
    return joined


class Browser:
    """Keeps cookies, and posts the forms that it was shown."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.cookies: dict[str, str] = {}

    def _request(self, path: str, method: str = "GET", body: str | None = None) -> Answer:
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        if body is not None:
            headers["Content_Type"] = "application/x-www-form-urlencoded"
        answer = self.site.request(path, method, body, **headers)
        for line in answer.headers.get("Set-Cookie", "").splitlines():
            self.cookies.update({name: morsel.value for name, morsel in SimpleCookie(line).items()})
        return answer

    def get(self, path: str) -> Answer:
        return self._request(path)

    def form(self, path: str) -> dict[str, str]:
        """The fields of a page's form, as a browser would post them unchanged."""
        answer = self.get(path)
        assert answer.status == 200, answer
        fields = Fields()
        fields.feed(answer.body)
        return fields.values

    def post(self, path: str, fields: dict[str, str]) -> Answer:
        return self._request(path, "POST", urlencode(fields))

    def log_in(self, name: str, password: str) -> None:
        path = "/admin/login/?next=/admin/"
        answer = self.post(path, {**self.form(path), "username": name, "password": password})
        assert (answer.status, answer.headers["Location"]) == (302, "/admin/")


class Fields(HTMLParser):
    """The fields of the forms of a page, except those that log out."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self._within = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given: dict[str, Any] = dict(attrs)
        name = given.get("name", "")
        if tag == "input" and given.get("type") != "submit":
            if given.get("type") != "checkbox":
                self.values[name] = given.get("value") or ""
            elif "checked" in given:
                self.values[name] = given.get("value", "on")
        elif tag in ("select", "textarea"):
            self._within = name
            self.values[name] = ""
        elif tag == "option" and "selected" in given:
            self.values[self._within] = given.get("value") or ""

    def handle_data(self, data: str) -> None:
        if self._within and self.lasttag == "textarea":
            self.values[self._within] = data.removeprefix("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("select", "textarea"):
            self._within = ""
