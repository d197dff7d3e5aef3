"""Servers that speak as Redis does, but are never well."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

# Gives the answer to one command; None closes the connection.
Answer = Callable[[list[bytes]], "bytes | None"]
HELLO = b"%1\r\n$5\r\nproto\r\n:3\r\n"


@contextmanager
def fake_redis(answer: Answer) -> Iterator[str]:
    """The URL of a server that greets like Redis, and then answers in its own way."""
    listener = socket.create_server(("127.0.0.1", 0))
    closing: list[socket.socket] = [listener]
    threads = [threading.Thread(target=_accept, args=(listener, answer, closing))]
    threads[0].start()
    try:
        yield f"redis://127.0.0.1:{listener.getsockname()[1]}/0"
    finally:
        for each in closing:
            # Ends the thread that waits for it, which close() alone does not.
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in threads:
            thread.join()


def _accept(listener: socket.socket, answer: Answer, closing: list[socket.socket]) -> None:
    threads = []
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            closing.append(connection)
            threads.append(threading.Thread(target=_serve, args=(connection, answer)))
            threads[-1].start()
    for thread in threads:
        thread.join()


def _serve(connection: socket.socket, answer: Answer) -> None:
    # The test's end closes it wherever it is.
    with suppress(OSError, ValueError), connection, connection.makefile("rb") as sent:
        while command := _command(sent):
            name = command[0].upper()
            if name == b"HELLO":
                connection.sendall(HELLO)
            elif name == b"CLIENT":
                connection.sendall(b"+OK\r\n")
            else:
                reply = answer(command)
                if reply is None:
                    # Without what is still on its way.
                    linger = struct.pack("ii", 1, 0)
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    return
                connection.sendall(reply)


def _command(sent: Iterator[bytes]) -> list[bytes]:
    """The next command, empty at the end."""
    line = next(sent, b"")
    return [_text(sent) for _ in range(int(line[1:]))] if line else []


def _text(sent: Iterator[bytes]) -> bytes:
    length = int(next(sent)[1:])
    text = b""
    while len(text) < length + 2:
        text += next(sent)
    return text[:-2]
