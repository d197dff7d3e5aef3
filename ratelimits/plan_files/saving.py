"""Saving many tenants at once: one edit that the next take obeys, however many they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .applying import log
from .comparing import Change
from .kinds import BATCH, OWN_LIMITS, TENANTS, Item, Kind, Path


def save_customers(
    changes: Sequence[Change], present: Mapping[Path, Item], alias: str, user: Any = None
) -> None:
    """Make the changes, in an open transaction. With a user they are in the history too."""
    tenants = [change for change in changes if change.item.kind is TENANTS]
    limits = [change for change in changes if change.item.kind is OWN_LIMITS]
    _save(TENANTS, tenants, alias)
    tops = _tops([change.path[1] for change in (changes if user else limits)], alias)
    for change in limits:
        change.item.row.tenant = tops[change.path[1]]
    _save(OWN_LIMITS, limits, alias)
    if user is not None:
        together: dict[str, list[Change]] = defaultdict(list)
        for change in changes:
            together[change.path[1]].append(change)
        for key, group in together.items():
            log(tops[key], group, user, alias)


def _save(kind: Kind, changes: Iterable[Change], alias: str) -> None:
    found = kind.model.objects.using(alias)
    added, changed = [], defaultdict(list)
    for change in changes:
        row = change.item.row
        for name, _, after in change.fields:
            setattr(row, name, after)
        if change.action == "add":
            added.append(row)
        else:
            # What somebody else edits meanwhile is left to them.
            changed[tuple(name for name, _, _ in change.fields)].append(row)
    if added:
        found.bulk_create(added, batch_size=BATCH)
    also = ("replaces",) if kind is OWN_LIMITS else ()
    for fields, some in changed.items():
        found.bulk_update(some, [*fields, *also], batch_size=BATCH)


def _tops(keys: Iterable[str], alias: str) -> dict[str, Any]:
    """Tenants by their keys. Read, since not every database tells what it has made."""
    return {row.key: row for batch in _batches(dict.fromkeys(keys)) for row in _read(batch, alias)}


def _read(keys: Sequence[str], alias: str) -> Any:
    return TENANTS.model.objects.using(alias).filter(key__in=keys)


def _batches(keys: Iterable[str]) -> Iterator[list[str]]:
    named = list(keys)
    return (named[start : start + BATCH] for start in range(0, len(named), BATCH))
