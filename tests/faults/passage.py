"""A way to a server on which connections get lost, as when another machine takes its address."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Passage:
    """Passes on what is sent. `lose()` ends that for the connections there are, silently."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.opened = 0
        # While it is not set, nobody is answered.
        self.answering = threading.Event()
        self.answering.set()
        self._sockets: list[socket.socket] = []
        self._lost: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def _start(self, target: object, *args: object) -> None:
        thread = threading.Thread(target=target, args=args)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._to))
                self._sockets += (client, server)
                self.opened += 1
                self._start(self._pass_on, client, server)
                self._start(self._pass_on, server, client, self.answering)

    def _pass_on(
        self, source: socket.socket, target: socket.socket, gate: threading.Event | None = None
    ) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if gate is not None:
                    gate.wait()
                if source not in self._lost:
                    target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)

    def lose(self) -> None:
        self._lost.update(self._sockets)

    def end(self) -> None:
        self.answering.set()
        for each in (self._listener, *self._sockets):
            # Ends the thread that waits for it, which close() alone does not.
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for each in (self._listener, *self._sockets):
            each.close()


@contextmanager
def passage(to: int) -> Iterator[Passage]:
    """One to a port of this machine."""
    made = Passage(to)
    try:
        yield made
    finally:
        made.end()
