"""How a connection of the store's own is made from the settings of a database."""

from __future__ import annotations

import time
from collections.abc import Generator
from copy import deepcopy
from typing import Any

from django.db import Error, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import load_backend

from ratelimits.models import StoreRow

# What is not for connections that are used for one short transaction after another.
NOT_INHERITED = ("isolation_level", "pool", "server_side_binding", "init_command")
# Where the file system has no shared memory for a write-ahead log, SQLite goes without one.
# Counts need not outlive a power cut, but the file must.
PREPARE = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    f'CREATE TABLE IF NOT EXISTS "{StoreRow._meta.db_table}" '
    '("key" varchar(32) NOT NULL PRIMARY KEY, "value" BLOB NOT NULL, "expires_at" bigint NOT NULL)',
)


def open_connection(alias: str, timeout: float) -> BaseDatabaseWrapper:
    """A connection like those of an alias, that may be handed from thread to thread."""
    settings = own_settings(connections.settings[alias], timeout)
    connection: BaseDatabaseWrapper = _wrapper(settings)(settings, alias)
    connection.inc_thread_sharing()
    try:
        connection.ensure_connection()
    except Error as error:
        # As it reads it could be of a statement, which may have been done; none was sent.
        raise type(error)(f"Error connecting to the database: {error}") from error
    if connection.vendor == "sqlite":
        _prepare(connection, timeout)
    else:
        _limit_waiting(connection, 2 * timeout)
    return connection


def own_settings(settings: dict[str, Any], timeout: float) -> dict[str, Any]:
    """The settings of an alias for a connection of one's own."""
    own = deepcopy(settings)
    own.update(ATOMIC_REQUESTS=False, AUTOCOMMIT=True, CONN_MAX_AGE=None, CONN_HEALTH_CHECKS=False)
    options = {key: value for key, value in own["OPTIONS"].items() if key not in NOT_INHERITED}
    own["OPTIONS"] = options
    # Other apps have engines of their own, made from Django's.
    vendor = _wrapper(own).vendor
    if vendor == "postgresql":
        # The least that the driver knows.
        options["connect_timeout"] = 2
    if vendor == "sqlite":
        own["NAME"] = own_file(str(own["NAME"]))
        # The cursor does the waiting.
        options["timeout"] = 0
    return own


def _wrapper(settings: dict[str, Any]) -> Any:
    return load_backend(settings["ENGINE"]).DatabaseWrapper


def own_file(name: str) -> str:
    """The SQLite file of the counts, beside that of the database.

    SQLite locks whole files: in one file, a take within a request's transaction would wait for
    that transaction to end, or make the request's next write fail.
    """
    path, question_mark, query = name.partition("?")
    return f"{path}-ratelimits{question_mark}{query}"


def _prepare(connection: BaseDatabaseWrapper, timeout: float) -> None:
    """Make the file and its table, if need be."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            with connection.cursor() as cursor:
                for statement in PREPARE:
                    cursor.execute(statement)
            return
        except OperationalError:
            # Another process may do the same just now, which SQLite does not always wait for.
            if time.monotonic() > deadline:
                connection.close()
                raise
            time.sleep(0.002)


def _limit_waiting(wrapper: BaseDatabaseWrapper, seconds: float) -> None:
    """Let psycopg (3) give up on a server that is connected, but does not answer."""
    connection: Any = wrapper.connection
    wait = getattr(connection, "wait", None)
    if wait is None:
        return

    def limited(generator: Generator[Any, Any, Any], *args: Any, **kwargs: Any) -> Any:
        deadline = time.monotonic() + seconds
        return wait(_until(deadline, generator), interval=seconds)

    connection.wait = limited


def _until(deadline: float, generator: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """The same generator, as long as it becomes ready in time."""
    try:
        wanted = next(generator)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() >= deadline:
                raise OperationalError("the server does not answer")
            wanted = generator.send(ready)
    except StopIteration as end:
        return end.value
