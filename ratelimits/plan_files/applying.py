"""Making the changes, as edits that the next take obeys, and in Django's history."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .comparing import Change
from .kinds import Item, Path
from .reading import marks


def apply(
    changes: Iterable[Change], present: Mapping[Path, Item], alias: str, user: Any = None
) -> None:
    """Make the changes, in an open transaction. With a user they are in the history too."""
    # The rows that the history is of, and that limits belong to.
    tops: dict[Path, Any] = {path: item.row for path, item in present.items() if len(path) == 2}
    together: dict[Path, list[Change]] = defaultdict(list)
    for change in changes:
        together[change.path[:2]].append(change)
    changes = [change for group in together.values() for change in group]
    for change in changes:
        if change.action == "remove":
            _remove(change, alias, user)
    # Before any other row gets them.
    for change in changes:
        _give_up_marks(change, alias)
    for change in changes:
        if change.action != "remove":
            _save(change, tops, alias)
    if user is not None:
        for path, group in together.items():
            if not _is_gone(group):
                log(tops[path], group, user, alias)


def _is_gone(group: Sequence[Change]) -> bool:
    return any(change.action == "remove" and len(change.path) == 2 for change in group)


def _remove(change: Change, alias: str, user: Any) -> None:
    if user is not None and len(change.path) == 2:
        # Of what is gone nothing could be said any more.
        log(change.item.row, [change], user, alias)
    change.item.row.delete(using=alias)


def _give_up_marks(change: Change, alias: str) -> None:
    if change.action == "change":
        given_up = [name for name, _, after in change.fields if not after]
        fields = [name for name in given_up if name in marks(change.item.kind)]
        if fields:
            for name in fields:
                setattr(change.item.row, name, False)
            change.item.row.save(using=alias, update_fields=fields)


def _save(change: Change, tops: dict[Path, Any], alias: str) -> None:
    row, kind = change.item.row, change.item.kind
    for name, _, after in change.fields:
        setattr(row, name, after)
    if change.action == "change":
        # What somebody else edits meanwhile is left to them.
        row.save(using=alias, update_fields=[name for name, _, _ in change.fields])
        return
    if kind.owner:
        setattr(row, kind.owner, tops[change.path[:2]])
    else:
        tops[change.path] = row
    row.save(using=alias)


def log(top: Any, group: Sequence[Change], user: Any, alias: str) -> None:
    """Write into the history of a row what changes, of it and within it."""
    # Only asked for where the admin is installed.
    from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry

    flags = {"add": ADDITION, "change": CHANGE, "remove": DELETION}
    flag = next((flags[change.action] for change in group if len(change.path) == 2), CHANGE)
    messages = [] if flag == DELETION else list(map(_message, group))
    entries = LogEntry.objects.db_manager(alias)
    entries.log_actions(user.pk, [top], flag, messages, single_object=True)


def _message(change: Change) -> dict[str, Any]:
    """As the admin's own forms and inlines write it."""
    verb = {"add": "added", "change": "changed", "remove": "deleted"}[change.action]
    row, fields = change.item.row, change.item.kind.fields
    said: dict[str, Any] = {}
    if len(change.path) > 2:
        said = {"name": str(row._meta.verbose_name), "object": str(row)}
    if change.action == "change":
        said["fields"] = [str(fields[name].verbose_name) for name, _, _ in change.fields]
    return {verb: said}
