"""Connections to a database of the store's own, outside of any request's transaction.

A request's own connection would hold the locks of its counts until its transaction ends, and
take the counts back with it.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from django.core import mail
from django.db import Error, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from .database_opening import open_connection

# How many connections a process keeps that nobody uses, and for how many seconds without a
# look at whether they still work.
MOST_IDLE = 16
TRUSTED = 1.0


class Idle(NamedTuple):
    connection: BaseDatabaseWrapper
    since: float


class OwnConnections:
    """Lends connections to the threads of this process. Safe with forks."""

    def __init__(self, alias: str, timeout: float) -> None:
        self.alias = alias
        self.timeout = timeout
        self._idle: deque[Idle] = deque()
        self._process = os.getpid()
        self._left_behind: list[deque[Idle]] = []

    @contextmanager
    def lent(self) -> Iterator[BaseDatabaseWrapper]:
        """A connection that nobody else uses. An error closes it, since nobody knows its state."""
        connection = self._usable() or open_connection(self.alias, self.timeout)
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        # A test database can't be dropped while somebody is connected to it.
        if len(self._idle) < MOST_IDLE and not in_tests():
            self._idle.append(Idle(connection, time.monotonic()))
        else:
            connection.close()

    def _usable(self) -> BaseDatabaseWrapper | None:
        if self._process != os.getpid():
            # To close the parent's connections would end them for the parent too.
            self._left_behind.append(self._idle)
            self._idle, self._process = deque(), os.getpid()
        while self._idle:
            try:
                connection, since = self._idle.pop()
            except IndexError:
                break
            if time.monotonic() - since < TRUSTED or self._answers(connection):
                return connection
        return None

    def _answers(self, connection: BaseDatabaseWrapper) -> bool:
        """Whether it still works. One that does not may have been closed by the server."""
        asked = time.monotonic()
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
        except Error:
            connection.close()
            if time.monotonic() - asked > self.timeout:
                raise
            return False
        return True

    def close(self) -> None:
        while self._idle:
            self._idle.pop().connection.close()


def in_tests() -> bool:
    """Whether Django's test environment is set up."""
    return hasattr(mail, "outbox")


def borrowed(alias: str) -> BaseDatabaseWrapper | None:
    """The thread's normal connection, if counts are to be kept with it.

    So it is for a database in memory, and in tests: a TestCase's transaction then takes its
    counts back, and no SQLite file is left over.
    """
    connection: Any = connections[alias]
    if connection.vendor == "sqlite":
        return connection if in_tests() or connection.is_in_memory_db() else None
    blocks = connection.atomic_blocks
    return connection if blocks and blocks[0]._from_testcase else None
