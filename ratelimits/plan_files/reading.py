"""From a file to the rows that it asks for, each checked as a form would."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import UniqueConstraint
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ratelimits.checks.base import meant, quoted, shown

from .kinds import SECTIONS, Field, Item, Kind, Path, place

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# What a field of a model is in TOML, and what to call that.
TYPES = (
    ("BooleanField", bool, _("true or false")),
    ("IntegerField", int, _("a whole number")),
    ("", str, _("text in quotes")),
)


class BadFile(Exception):
    """A file that can't be followed. `faults` are sentences that name the place of each."""

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(self.faults))


@dataclass
class Wanted:
    """What a file asks for; of sections that it does not have, nothing."""

    sections: set[str] = field(default_factory=set)
    items: dict[Path, Item] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


def read(text: str) -> Wanted:
    """The rows that a file asks for, not saved. Raises BadFile with all that is wrong."""
    try:
        # With the mark that some editors begin a file with, also on the standard input.
        parsed = tomllib.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        # Not only its own errors: also for numbers too long and for tables too deep for Python.
        raise BadFile([gettext("This is not TOML: %s") % error]) from error
    wanted = Wanted(set(SECTIONS) & set(parsed))
    wanted.faults += _unknown("", parsed, SECTIONS)
    for section in SECTIONS:
        if section in parsed:
            _read_section(wanted, SECTIONS[section], (section,), parsed[section])
    wanted.faults += _twice_marked(wanted.items.values())
    if wanted.faults:
        raise BadFile(wanted.faults)
    return wanted


def _read_section(wanted: Wanted, kind: Kind, path: Path, tables: Any) -> None:
    if not isinstance(tables, Mapping):
        wanted.faults.append(gettext("[%s] is to be a table of tables.") % ".".join(path))
        return
    for name, table in tables.items():
        where = (*path, name)
        if isinstance(table, Mapping):
            _read_table(wanted, kind, where, table)
        else:
            told = gettext('%(place)s: write a table, such as [%(section)s."%(name)s"].')
            names = {"place": place(where), "section": ".".join(path), "name": name}
            wanted.faults.append(told % names)


def _read_table(wanted: Wanted, kind: Kind, path: Path, table: Mapping[str, Any]) -> None:
    inner = kind.inner
    known = [*kind.fields, *([inner.section] if inner else [])]
    faults = list(_unknown(f"{place(path)}: ", table, known))
    values = {name: table[name] for name in kind.fields if name in table}
    wrong = dict(_wrong_types(kind, values))
    faults += [f"{place(path, name)}: {fault}" for name, fault in wrong.items()]
    row = kind.make(path[-1], {n: value for n, value in values.items() if n not in wrong})
    faults += invalid(kind, path, row, wrong)
    wanted.faults += faults
    wanted.items[path] = Item(kind, path, row)
    if inner and inner.section in table:
        _read_section(wanted, inner, (*path, inner.section), table[inner.section])


def _wrong_types(kind: Kind, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        expected, words = _type(kind.fields[name])
        if type(value) is not expected:
            told = gettext("%(value)s is not %(expected)s.")
            yield name, told % {"value": shown(value), "expected": words}


def _type(field: Field) -> tuple[type, Any]:
    return next((type_, words) for name, type_, words in TYPES if name in field.get_internal_type())


def invalid(kind: Kind, path: Path, row: Any, known: Iterable[str] = ()) -> Iterator[str]:
    """What the model says of a row. That names are unique is the file's own nature."""
    # What it belongs to is not in the database yet.
    exclude = {*known, *([kind.owner] if kind.owner else [])}
    try:
        row.full_clean(exclude=exclude, validate_unique=False, validate_constraints=False)
    except ValidationError as error:
        for name, messages in error.message_dict.items():
            shown_name = "" if name in (kind.key, "__all__") else name
            for message in messages:
                yield f"{place(path, shown_name)}: {message}"


def _unknown(where: str, table: Mapping[str, Any], known: Iterable[str]) -> Iterator[str]:
    for name in table:
        if name not in known:
            best = meant(name, known)
            if best:
                told = gettext("there is no %(name)s. Did you mean %(best)s?")
            else:
                told = gettext("there is no %(name)s. There is %(known)s.")
            names = {"name": shown(name), "best": quoted([best or ""]), "known": quoted(known)}
            yield f"{where}{told % names}"


def marks(kind: Kind) -> list[str]:
    """The fields that only one row can have set."""
    return [
        constraint.fields[0]
        for constraint in kind.model._meta.constraints
        if isinstance(constraint, UniqueConstraint) and constraint.condition is not None
    ]


def _twice_marked(items: Iterable[Item]) -> Iterator[str]:
    for kind in SECTIONS.values():
        for mark in marks(kind):
            marked = [item for item in items if item.kind is kind and item.value(mark)]
            if len(marked) > 1:
                told = gettext("%(places)s: only one can have %(mark)s.")
                names = {"places": ", ".join(map(str, marked)), "mark": mark}
                yield told % names
