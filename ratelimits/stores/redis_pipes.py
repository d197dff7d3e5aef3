"""Redis on an event loop: one connection for all that is asked there, its replies in order."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary, finalize, ref

from redis.exceptions import ConnectionError, RedisError, TimeoutError

from .redis_connections import only_reads

CHUNK = 65536


class NoPipe(Exception):
    """This connection, or this event loop, can't be used so: a thread has to do."""


class Pipe:
    """One connection of one event loop.

    Each command is sent at once, behind those that wait for their replies. A caller who is
    cancelled leaves its place in the row, so that nobody gets the reply of another. When the
    connection fails, or a reply takes longer than `timeout` seconds, all who wait are told.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, connection: Any, timeout: float) -> None:
        """`connection` has said its first words. Raises NoPipe."""
        try:
            from hiredis import Reader

            self.socket: socket.socket = connection._sock
            self.reader = Reader(replyError=connection._parser.parse_error)
        except (ImportError, AttributeError) as error:
            raise NoPipe from error
        if isinstance(self.socket, ssl.SSLSocket):
            raise NoPipe
        self.loop = loop
        self.connection = connection
        self.timeout = timeout
        self.is_open = True
        self.waiting: deque[tuple[asyncio.Future[Any], float]] = deque()
        self.unsent = b""
        self.watch: asyncio.TimerHandle | None = None
        self.socket.setblocking(False)
        try:
            loop.add_reader(self.socket, self._read)
        except NotImplementedError as error:
            raise NoPipe from error
        # Whoever forgets a loop forgets this too, and a socket wants to be closed.
        finalize(self, connection.disconnect)

    def ask(self, command: bytes) -> asyncio.Future[Any]:
        """The reply to come: what was answered, also if that is an error."""
        reply = self.loop.create_future()
        if not self.is_open:
            # It ended before those who waited for it could use it: nothing was sent.
            text = "Error connecting to Redis: the server closed the connection at once."
            reply.set_exception(ConnectionError(text))
            return reply
        until = self.loop.time() + self.timeout
        self.waiting.append((reply, until))
        if self.watch is None:
            self._watch_until(until)
        if self.unsent:
            self.unsent += command
        else:
            self._send(command)
        return reply

    def _send(self, data: bytes) -> None:
        try:
            sent = self.socket.send(data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            self.close(ConnectionError(f"Error while writing to the socket: {error}"))
            return
        self.unsent = data[sent:]
        if self.unsent:
            self.loop.add_writer(self.socket, self._send_rest)

    def _send_rest(self) -> None:
        self.loop.remove_writer(self.socket)
        self._send(self.unsent)

    def _read(self) -> None:
        try:
            data = self.socket.recv(CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.close(ConnectionError(f"Error while reading from the socket: {error}"))
            return
        if not data:
            self.close(ConnectionError("The server closed the connection."))
            return
        try:
            self.reader.feed(data)
            while (reply := self.reader.gets()) is not False:
                future, _ = self.waiting.popleft()
                if not future.done():
                    future.set_result(reply)
        except Exception as error:
            # Not a reply, or one that nobody asked for: whose is the next one?
            self.close(ConnectionError(f"A reply that makes no sense: {error!r}"))

    def _watch_until(self, moment: float) -> None:
        # The timer does not own what owns it: both are gone as soon as their loop is.
        self.watch = self.loop.call_at(moment, _look, ref(self))

    def look(self) -> None:
        """Whether who has waited longest has waited too long."""
        self.watch = None
        # The loop may have been too busy to read.
        self._read()
        if self.waiting:
            _, until = self.waiting[0]
            if until <= self.loop.time():
                self.close(TimeoutError("Timeout reading from the socket"))
            else:
                self._watch_until(until)

    def close(self, error: RedisError) -> None:
        """Tell all who wait, and hear no more."""
        if not self.is_open:
            return
        self.is_open = False
        self.loop.remove_reader(self.socket)
        self.loop.remove_writer(self.socket)
        if self.watch is not None:
            self.watch.cancel()
        self.connection.disconnect()
        for future, _ in self.waiting:
            if not future.done():
                future.set_exception(error)
        self.waiting.clear()


def _look(reference: ref[Pipe]) -> None:
    pipe = reference()
    if pipe is not None and pipe.is_open:
        pipe.look()


def _running() -> asyncio.AbstractEventLoop | None:
    """The event loop that this is called on."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class Pipes:
    """The pipes to one server, one for each event loop that asks it."""

    def __init__(self, make: Callable[[], Any], timeout: float) -> None:
        """`make` gives a connection that is not yet connected."""
        self.make = make
        self.timeout = timeout
        # The loop owns its pipe, as long as it lives and listens.
        self._pipes: WeakKeyDictionary[asyncio.AbstractEventLoop, ref[Pipe]] = WeakKeyDictionary()
        self._opening: WeakKeyDictionary[
            asyncio.AbstractEventLoop, asyncio.Task[Pipe | Exception]
        ] = WeakKeyDictionary()

    async def exchange(self, command: bytes) -> Any:
        """Send a command and read its reply. Raises RedisError, or NoPipe."""
        loop = asyncio.get_running_loop()
        reference = self._pipes.get(loop)
        pipe = None if reference is None else reference()
        if pipe is None or not pipe.is_open:
            pipe = await self._opened(loop)
        reply = await pipe.ask(command)
        if isinstance(reply, RedisError):
            if only_reads(reply):
                # A new connection finds the primary, be it by Sentinel or by its name.
                pipe.close(reply)
            raise reply
        return reply

    def close(self) -> None:
        """End those of all loops, each on its own. Called on one of them, or by any thread."""
        for loop, reference in list(self._pipes.items()):
            pipe = reference()
            if pipe is None or loop.is_closed():
                continue
            end = partial(pipe.close, ConnectionError("Nobody needs this connection any more."))
            if loop.is_running() and loop is not _running():
                loop.call_soon_threadsafe(end)
            else:
                end()

    async def _opened(self, loop: asyncio.AbstractEventLoop) -> Pipe:
        """All who ask meanwhile wait for the same one, also if the first of them gives up."""
        task = self._opening.get(loop)
        if task is None:
            task = self._opening[loop] = loop.create_task(self._open(loop))
        opened = await asyncio.shield(task)
        if isinstance(opened, Exception):
            raise opened
        return opened

    async def _open(self, loop: asyncio.AbstractEventLoop) -> Pipe | Exception:
        try:
            connection = await self._in_a_thread(loop)
            pipe = Pipe(loop, connection, self.timeout)
        except Exception as error:
            return error
        else:
            self._pipes[loop] = ref(pipe)
            return pipe
        finally:
            del self._opening[loop]

    async def _in_a_thread(self, loop: asyncio.AbstractEventLoop) -> Any:
        # One of its own: those of the loop may all be busy with what takes long.
        thread = ThreadPoolExecutor(1, "ratelimits-connect")
        try:
            return await loop.run_in_executor(thread, self._connected)
        finally:
            thread.shutdown(wait=False)

    def _connected(self) -> Any:
        """Its first words are those of any other connection, which take a moment."""
        connection = self.make()
        connection.connect()
        return connection
