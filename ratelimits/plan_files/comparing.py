"""What would have to change in the database for it to be what a file says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from django.utils.translation import gettext, ngettext

from ratelimits import rows
from ratelimits.words import visible

from .kinds import SECTIONS, Item, Path, place
from .reading import BadFile, Wanted, marks

# Of the tenants of a plan so many are named.
EXAMPLES = 10


@dataclass(frozen=True)
class Change:
    """One row to add, change or remove; `fields` are those that differ: name, before, after."""

    action: Literal["add", "change", "remove"]
    item: Item
    fields: tuple[tuple[str, Any, Any], ...] = ()

    @property
    def path(self) -> Path:
        return self.item.path

    def __str__(self) -> str:
        sign = {"add": "+", "change": "~", "remove": "-"}[self.action]
        if self.action == "remove":
            return f"{sign} {self.item}"
        said = ", ".join(
            f"{name} {_shown(after)}" if self.action == "add" else _changed(name, before, after)
            for name, before, after in self.fields
        )
        return f"{sign} {self.item}: {said}" if said else f"{sign} {self.item}"


@dataclass(frozen=True)
class Difference:
    """The changes, and what the file lacks but is to stay."""

    changes: tuple[Change, ...]
    kept: tuple[Item, ...]


def _changed(name: str, before: Any, after: Any) -> str:
    return f"{name} {_shown(before)} -> {_shown(after)}"


def _shown(value: Any) -> str:
    if value is None or value == "":
        return gettext("(none)")
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    return visible(str(value))


def compare(wanted: Wanted, present: Mapping[Path, Item], alias: str, prune: bool) -> Difference:
    """What to do. Raises BadFile for what can't be done."""
    lacking = tuple(_lacking(wanted, present))
    removed = lacking if prune else ()
    faults = [
        *_taken_marks(wanted, present, removed),
        *_in_use(removed, alias),
        *_last_default(wanted, removed),
    ]
    if faults:
        raise BadFile(faults)
    changes = [Change("remove", item) for item in removed]
    for path, item in wanted.items.items():
        change = change_of(item, present.get(path))
        if change is not None:
            changes.append(change)
    return Difference(tuple(changes), () if prune else lacking)


def _lacking(wanted: Wanted, present: Mapping[Path, Item]) -> Iterator[Item]:
    """What the file does not have, in the sections that it has."""
    for path, item in present.items():
        missing = path[0] in wanted.sections and path not in wanted.items
        # What is within something that goes, goes with it.
        if missing and (len(path) == 2 or path[:2] in wanted.items):
            yield item


def change_of(item: Item, before: Item | None) -> Change | None:
    """What makes the row that there is, if any, the one that is asked for; None if nothing."""
    fields = item.kind.fields
    if before is None:
        said = ((name, None, item.value(name)) for name in fields)
        given = tuple(entry for entry in said if entry[2] != fields[entry[0]].get_default())
        return Change("add", item, given)
    both = ((name, before.value(name), item.value(name)) for name in fields)
    differing = tuple(entry for entry in both if entry[1] != entry[2])
    return (
        Change("change", Item(item.kind, item.path, before.row), differing) if differing else None
    )


def _taken_marks(
    wanted: Wanted, present: Mapping[Path, Item], removed: Iterable[Item]
) -> Iterator[str]:
    """A mark that the file gives to one row, while another one that stays has it."""
    gone = {item.path for item in removed}
    for path, item in wanted.items.items():
        for mark in marks(item.kind):
            for other in present.values():
                stays = other.path not in gone and other.path not in wanted.items
                if item.value(mark) and other.kind is item.kind and stays and other.value(mark):
                    told = gettext("%(place)s: %(other)s has it already, which the file lacks.")
                    yield told % {"place": place(path, mark), "other": other}


def _in_use(removed: Iterable[Item], alias: str) -> Iterator[str]:
    """Plans that would go while tenants are on them."""
    plans = [item for item in removed if item.kind is SECTIONS["plans"]]
    for item in plans:
        tenants = rows.model("Tenant").objects.using(alias).filter(plan=item.row)
        count = tenants.count()
        if count:
            names = list(tenants.order_by("key").values_list("key", flat=True)[:EXAMPLES])
            more = ", ..." if count > len(names) else ""
            told = ngettext(
                "%(plan)s: the file lacks it, but %(count)d tenant is on it: %(names)s",
                "%(plan)s: the file lacks it, but %(count)d tenants are on it: %(names)s",
                count,
            )
            yield told % {"plan": item, "count": count, "names": ", ".join(names) + more}


def _last_default(wanted: Wanted, removed: Iterable[Item]) -> Iterator[str]:
    """The plan of all who have no plan of their own, which would have no limit then."""
    for item in removed:
        if item.kind is SECTIONS["plans"] and item.value("is_default"):
            plans = (other for other in wanted.items.values() if other.kind is item.kind)
            if not any(other.value("is_default") for other in plans):
                told = gettext(
                    "%s: the file lacks it, but it is the default, and no other is to be."
                )
                yield told % item
