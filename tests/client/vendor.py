"""Somebody else's API: a real HTTP server in a thread that answers as a test tells it to."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import pytest


class Reply(NamedTuple):
    """One answer. A body in several parts is sent in chunks, without its length."""

    status: int = 200
    headers: Mapping[str, str] = {}
    body: bytes | tuple[bytes, ...] = b"well"
    # The parts after the first are not sent before this is set.
    rest: threading.Event | None = None


class Received(NamedTuple):
    method: str
    path: str
    body: bytes
    # The connection it came over, by its client's port.
    connection: int
    headers: dict[str, str]
    # When, by the monotonic clock.
    at: float


class Vendor(ThreadingHTTPServer):
    """Gives the replies in their order, and then good ones."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.replies: deque[Reply | None] = deque()
        self.received: list[Received] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def will(self, *replies: Reply | None) -> None:
        """None: never answer. The connection is closed instead."""
        self.replies.extend(replies)

    @property
    def bodies(self) -> list[bytes]:
        return [request.body for request in self.received]

    @property
    def connections(self) -> set[int]:
        return {request.connection for request in self.received}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients hang up in the middle; that is what is tested."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Or else each answer waits 40 ms for the receipt of its own head.
    disable_nagle_algorithm = True
    server: Vendor

    def do_GET(self) -> None:
        body = self.body()
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.received.append(
            Received(
                self.command, self.path, body, self.client_address[1], headers, time.monotonic()
            )
        )
        reply = self.server.replies.popleft() if self.server.replies else Reply()
        if reply is None:
            self.close_connection = True
        else:
            self.answer(reply)

    do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = do_OPTIONS = do_GET  # noqa: N815

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def answer(self, reply: Reply) -> None:
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if isinstance(reply.body, bytes):
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(reply.body)
            return
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in reply.body:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
            if reply.rest is not None:
                reply.rest.wait(30)
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def vendor() -> Iterator[Vendor]:
    server = Vendor()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()
