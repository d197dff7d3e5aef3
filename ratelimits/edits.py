"""What happens when plans or tenants are edited: every process hears of it through the store."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from asgiref.sync import sync_to_async
from django.db import Error, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from . import rows
from .catalog import Catalog, plans_key, tenant_key
from .conf import conf
from .effects import Effect, Flow
from .exceptions import RateLimitError
from .logs import logger
from .modes import Switch, Version
from .stores import get_store

# What this process knows of committed rows.
shared = Catalog()


class Told(Protocol):
    """What others are told of when it is committed."""

    def publish(self) -> None: ...


@dataclass(eq=False)
class Edit:
    """The plans, or tenants by their keys; None for any of them.

    `mode` tells that an operator has switched; `switch` is to what, if it had to be read.
    """

    plans: bool = False
    tenants: tuple[str, ...] | None = ()
    mode: bool = False
    switch: str | None = None

    def publish(self) -> None:
        """Tell every process. They read anew before they take anything else."""
        told, edit = True, self
        if self.plans or self.tenants is None:
            current = _current_version()
            if self.switch is None and (self.mode or not current):
                # Once only: when the store is back, no database is asked.
                edit = replace(self, switch=_stored_switch())
            version = _next_version(edit, current)
            told = set_versions({plans_key(): version})
            shared.forget_plans(version)
        for key in self.tenants or ():
            version = secrets.token_urlsafe(6)
            told = set_versions({tenant_key(key): version}) and told
            shared.forget_tenant(key, version)
        if not told:
            publish_later(edit)


def publish_later(edit: Told) -> None:
    """If the store is away just now, tell other processes when it is back."""
    store = get_store()
    if store is not None:
        store.once_back(edit.publish)


def _next_version(edit: Edit, current: str) -> str:
    """A new version of the plans, of whose parts only those change that were edited."""
    now = Version.read(current or shared.version)
    everyone = secrets.token_urlsafe(6) if edit.tenants is None else now.everyone
    is_kept = edit.switch is None or (current and not edit.mode)
    switch = now.switch if is_kept else edit.switch or ""
    return str(Version(secrets.token_urlsafe(6), everyone, switch))


def _stored_switch() -> str | None:
    """The mode that was switched to, as it travels; None if it can't be read."""
    try:
        return str(rows.load_switch() or "")
    except Error:
        return None


def _current_version() -> str:
    """What other processes hear of; "" if the store is away, or knows of no edit."""
    store = get_store()
    try:
        return store.versions([plans_key()])[0] if store else ""
    except RateLimitError:
        # Setting the next one fails too, and says so.
        return ""


def is_told(switch: Switch | None) -> bool:
    """Whether other processes hear through the store that this is the mode that was switched to."""
    store = get_store()
    try:
        version = store.versions([plans_key()])[0] if store else ""
    except RateLimitError:
        return False
    return Switch.read(Version.read(version).switch) == switch


def set_versions(versions: dict[str, str]) -> bool:
    """Tell every process of new versions. Whether there is nothing left to tell."""
    store = get_store()
    if store is None:
        return True
    try:
        store.set_versions(versions, _lifetime(versions))
    except RateLimitError as error:
        logger.error(
            "Other processes can't be told of an edited limit (%s); they act on it within %s s.",
            error,
            conf.CATALOG_TTL,
        )
        return False
    return True


def _lifetime(versions: dict[str, str]) -> int:
    """Seconds until nobody goes by an older version, and a mode that travels in one has ended."""
    switches = (Switch.read(Version.read(version).switch) for version in versions.values())
    ends = [switch.until + 1 - int(time.time()) for switch in switches if switch]
    return max(1, int(2 * conf.CATALOG_TTL), *ends)


@dataclass
class Transaction:
    """The edits of an open transaction, and what its own takes have read since.

    Others must not see them, and a rollback takes them back. An edit is in force as long as
    Django keeps its hook for the commit, which a rollback to a savepoint removes.
    """

    edits: list[Told] = field(default_factory=list)
    catalog: Catalog = field(default_factory=lambda: Catalog(versioned=False))

    def in_force(self, connection: BaseDatabaseWrapper) -> bool:
        hooks = [entry[1] for entry in connection.run_on_commit]
        alive = [edit for edit in self.edits if edit.publish in hooks]
        if len(alive) != len(self.edits):
            self.edits = alive
            self.catalog.clear()
        return bool(alive)


_open: WeakKeyDictionary[BaseDatabaseWrapper, Transaction] = WeakKeyDictionary()


def note(edit: Told, using: str) -> None:
    """An edit was made: acts at once in this transaction, elsewhere when it is committed."""
    connection = connections[using]
    if not connection.in_atomic_block:
        edit.publish()
        return
    if not connection.run_on_commit:
        # What was noted of it before belongs to transactions that are over.
        _open.pop(connection, None)
    changes = _open.setdefault(connection, Transaction())
    changes.edits.append(edit)
    changes.catalog.clear()
    transaction.on_commit(edit.publish, using=using)


def catalog() -> Flow[Catalog]:
    """The catalog to use here: the shared one, outside of transactions that edit.

    Only the thread that queries knows its connection; an event loop has another one. Nobody
    goes there unless somebody edits at this moment.
    """
    if not is_anyone_editing():
        return shared
    found: Catalog = yield Effect(_catalog, sync_to_async(_catalog, thread_sensitive=True))
    return found


def forget_rows() -> None:
    """Read everything anew, also what takes within open transactions go by."""
    shared.clear()
    for changes in list(_open.values()):
        changes.catalog.clear()


def is_anyone_editing() -> bool:
    """Whether a transaction with edits is open on any connection, as far as can be told."""
    if not _open:
        return False
    # Whatever other threads do to the dictionary does not disturb a list of its keys.
    editing = [reference() for reference in _open.keyrefs()]
    return any(connection.in_atomic_block for connection in editing if connection is not None)


def is_editing() -> bool:
    """Whether the transaction that this thread is in has edits, which others must not see yet."""
    return is_anyone_editing() and _catalog() is not shared


def _catalog() -> Catalog:
    connection: Any = connections[rows.write_alias()]
    changes = _open.get(connection)
    if changes is None:
        return shared
    if connection.in_atomic_block and changes.in_force(connection):
        return changes.catalog
    del _open[connection]
    return shared


def tenants(keys: Iterable[str] | None) -> Edit:
    return Edit(tenants=None if keys is None else tuple(keys))
