"""What was read from the models is kept, and read again under another version or in time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, Error, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from . import rows
from .conf import conf
from .exceptions import CatalogUnavailable, PlanUnknown
from .logs import once

# Seconds until the database is asked again after it failed.
RETRY = 1.0
# Seconds that is kept what was read in a transaction. On most databases one sees what was there
# when it began, which may be older than an edit that everybody else knows of already.
OLD_SNAPSHOT = 1.0
# Those where each query of a transaction sees all that is committed, unless set otherwise.
READ_COMMITTED = ("postgresql", "oracle")


@dataclass
class Kept:
    """What was read, with the version that it was read under and when to read it again.

    `groups` is what was made of it.
    """

    value: Any
    version: str
    until: float
    groups: dict[Any, Any] = field(default_factory=dict)

    @property
    def fresh(self) -> bool:
        return time.monotonic() < self.until


def read(
    load: Callable[[], Any], before: Kept | None, version: str, for_others: bool = True
) -> Kept:
    """Read rows, and keep what was known `before` if they can't be read.

    `for_others` tells that it is kept for longer than the transaction around it. Raises
    CatalogUnavailable if the rows can't be read and nothing was known.
    """
    ttl = conf.CATALOG_TTL * random.uniform(0.8, 1.0)
    if for_others and _may_be_old():
        ttl = min(ttl, OLD_SNAPSHOT)
    try:
        return Kept(_in_savepoint(load), version, time.monotonic() + ttl)
    except (Error, ImproperlyConfigured, PlanUnknown) as error:
        _report(error)
        if before is None:
            raise CatalogUnavailable(str(error)) from error
        return Kept(before.value, version, time.monotonic() + RETRY)


def put(kept: dict[Any, Kept], key: Any, value: Kept, most: int) -> None:
    """Keep one more, of so many at most: the oldest goes."""
    if key not in kept and len(kept) >= most:
        kept.pop(next(iter(kept)), None)
    kept[key] = value


def _report(error: Exception) -> None:
    if isinstance(error, PlanUnknown):
        once.error(
            f"A tenant's plan is not known ({error}); what is known from before stays.",
            # Of each tenant it may say something else, and is one fault even so.
            topic=f"PLAN raises {type(error.__cause__).__name__}",
        )
    else:
        once.error(
            f"The limits can't be read from the database ({error}); those known from before "
            "stay in force. Has ratelimits been migrated?"
        )


def _in_savepoint(load: Callable[[], Any]) -> Any:
    """Reads so that a failure leaves a transaction around it usable."""
    connection = _connection()
    if not connection.in_atomic_block:
        return load()
    with transaction.atomic(using=connection.alias):
        return load()


def _may_be_old() -> bool:
    """Whether what is read here may be older than the last commit."""
    connection = _connection()
    if not connection.in_atomic_block:
        return False
    options = connection.settings_dict.get("OPTIONS") or {}
    return connection.vendor not in READ_COMMITTED or "isolation_level" in options


def _connection() -> BaseDatabaseWrapper:
    return connections[rows.write_alias() or DEFAULT_DB_ALIAS]
