"""Callers of the demo: each with a name, and one connection that it keeps."""

from __future__ import annotations

import time
from http.client import HTTPConnection, HTTPMessage
from types import TracebackType
from typing import NamedTuple
from uuid import uuid4

TIMEOUT = 30.0


class Answer(NamedTuple):
    """What came back; `started` and `finished` are moments of the server's clock."""

    status: int
    headers: HTTPMessage
    started: float
    finished: float

    @property
    def passed(self) -> bool:
        return self.status == 200


class Caller:
    """Sends GETs under a name, by default one that nobody had before, and so a full bucket."""

    def __init__(self, port: int, name: str = "") -> None:
        self.name = name or f"caller-{uuid4()}"
        self._connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)

    def __enter__(self) -> Caller:
        # Opened here, so that no measured request pays for it.
        self.get("/health")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    def get(self, path: str) -> Answer:
        self._connection.request("GET", path, headers={"X-API-Key": self.name})
        response = self._connection.getresponse()
        response.read()
        started, finished = map(float, response.headers["X-Demo-Clock"].split())
        return Answer(response.status, response.headers, started, finished)


def sleep_until(moment: float) -> None:
    """Until a moment of the wall clock, which the server on this machine shares."""
    time.sleep(max(0.0, moment - time.time()))
