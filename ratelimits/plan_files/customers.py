"""Lists of customers, as CSV: who they are, the plan of each, and rates of their own."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

from django.utils.translation import gettext

from ratelimits import rows
from ratelimits.checks.base import meant, quoted, shown
from ratelimits.fields import read_rate
from ratelimits.overrides import named

from .kinds import OWN_LIMITS, TENANTS, Item, Path, tenants
from .reading import BadFile, invalid

KEY, NAME, PLAN, RATE = "key", "name", "plan", "rate"
NAMED = f"{RATE}:"
COLUMNS = (KEY, NAME, PLAN, RATE)
# Of an own limit's, what it takes over from the limit of the plan that it replaces.
TAKEN_OVER = ("scope", "algorithm", "mode", "on_store_failure")


@dataclass
class Customers:
    """The rows that a list asks for, and those that there are."""

    items: dict[Path, Item] = field(default_factory=dict)
    present: dict[Path, Item] = field(default_factory=dict)
    # The names of limits that are none of a customer's plan, as often as that is so.
    beside: Counter[str] = field(default_factory=Counter)


def decoded(data: bytes) -> str:
    """The text of a file. Raises BadFile for what is not UTF-8, by line."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        told = gettext("this is not UTF-8. Save the list as “CSV UTF-8”.")
        raise BadFile([_at(number, told)]) from error


def read_customers(text: str, alias: str) -> Customers:
    """What a list asks for, not saved. Raises BadFile with all that is wrong, by line."""
    lines = list(_lines(text))
    keys = [cells.get(KEY, "") for _, cells in lines]
    found = Customers(present=tenants(alias, list(dict.fromkeys(filter(rows.is_storable, keys)))))
    plans = {plan.slug: plan for plan in _plans(alias)}
    known = {limit.name: limit for plan in plans.values() for limit in plan.limits.all()}
    faults, seen = [], set()
    for number, cells in lines:
        key = cells[KEY]
        if key in seen:
            wrong: Iterable[str] = [gettext("the key %s was in a line before.") % shown(key)]
        elif not all(map(rows.is_storable, cells.values())):
            wrong = [gettext("there is a character that no database can store.")]
        else:
            wrong = _read(found, cells, plans, known)
        seen.add(key)
        faults += [_at(number, fault) for fault in wrong]
    if faults:
        raise BadFile(faults)
    return found


def _plans(alias: str) -> Any:
    return rows.model("Plan").objects.using(alias).prefetch_related("limits__plan")


def _at(number: int, fault: str) -> str:
    return gettext("line %(number)d: %(fault)s") % {"number": number, "fault": fault}


def _lines(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """The cells of each line by their columns. Raises BadFile for what is no table."""
    text = text.removeprefix("\ufeff")
    reader = csv.reader(StringIO(text, newline=""), delimiter=_delimiter(text), strict=True)
    try:
        header = [_column(name) for name in _filled(next(reader, []))]
        _check_header(header)
        faults = []
        for cells in reader:
            if not any(map(str.strip, cells)):
                continue
            if len(cells) < len(header) or len(_filled(cells)) > len(header):
                told = gettext("%(found)d cells, but the first line names %(named)d columns.")
                told %= {"found": len(cells), "named": len(header)}
                faults.append(_at(reader.line_num, told))
            else:
                stripped = map(str.strip, cells)
                yield reader.line_num, dict(zip(header, stripped, strict=False))
    except csv.Error as error:
        raise BadFile([_at(reader.line_num, str(error))]) from error
    if faults:
        raise BadFile(faults)


def _delimiter(text: str) -> str:
    """As spreadsheets write it where the comma is in numbers, or tabs."""
    first = text.partition("\n")[0]
    return "," if "," in first else next((mark for mark in ";\t" if mark in first), ",")


def _filled(cells: list[str]) -> list[str]:
    """Without the empty ones at the end, of which spreadsheets add some."""
    while cells and not cells[-1].strip():
        cells = cells[:-1]
    return cells


def _column(name: str) -> str:
    kind, mark, limit = name.strip().partition(":")
    return f"{kind.strip()}{mark}{limit.strip()}"


def _check_header(header: list[str]) -> None:
    faults = []
    for name in header:
        if name not in COLUMNS and not (name.startswith(NAMED) and name != NAMED):
            best = meant(name, COLUMNS)
            told = gettext("there is no column %(name)s. Did you mean %(best)s?")
            if best is None:
                told = gettext("there is no column %(name)s. There is %(best)s and rate:NAME.")
            names = {"name": shown(name), "best": quoted([best] if best else COLUMNS)}
            faults.append(told % names)
        elif header.count(name) > 1:
            faults.append(gettext("the column %s is there more than once.") % shown(name))
    if KEY not in header:
        faults.append(gettext('the column "key" is missing.'))
    if faults:
        raise BadFile(_at(1, fault) for fault in dict.fromkeys(faults))


def _read(
    found: Customers,
    cells: Mapping[str, str],
    plans: Mapping[str, Any],
    known: Mapping[str, Any],
) -> Iterator[str]:
    """Note what a line asks for; gives what is wrong with it."""
    path = (TENANTS.section, cells[KEY])
    before = found.present.get(path)
    row = copy(before.row) if before else TENANTS.make(cells[KEY], {})
    if NAME in cells:
        row.name = cells[NAME]
    slug = cells.get(PLAN, "")
    if slug and slug not in plans:
        yield _no_plan(slug, plans)
    elif PLAN in cells:
        row.plan = plans.get(slug)
    # The plan is one of those that there are, which would be asked for each.
    yield from invalid(TENANTS, path, row, [PLAN])
    found.items[path] = Item(TENANTS, path, row)
    plan = row.plan or next((each for each in plans.values() if each.is_default), None)
    sold = {limit.name: limit for limit in plan.limits.all()} if plan else {}
    for column, text in cells.items():
        if text and (column == RATE or column.startswith(NAMED)):
            yield from _read_rate(found, path, column, text, sold, known)


def _no_plan(slug: str, plans: Iterable[str]) -> str:
    best = meant(slug, plans)
    told = gettext("there is no plan %s.") % shown(slug)
    return told if best is None else f"{told} {gettext('Did you mean %s?') % quoted([best])}"


def _read_rate(
    found: Customers,
    owner: Path,
    column: str,
    text: str,
    sold: Mapping[str, Any],
    known: Mapping[str, Any],
) -> Iterator[str]:
    name = column.partition(":")[2]
    if column == RATE:
        if len(sold) != 1:
            told = gettext(
                "its plan has %(count)d limits, so that it can't be known which one has the rate. "
                "Name the column rate:NAME."
            )
            yield told % {"count": len(sold)}
            return
        (name,) = sold
    path = (*owner, OWN_LIMITS.section, name)
    before = found.present.get(path)
    limit = sold.get(name)
    taken_over = _taken_over(limit or known.get(name))
    if limit is None:
        # That another plan has it in shadow says nothing of this one.
        taken_over.pop("mode", None)
    row = copy(before.row) if before else OWN_LIMITS.make(name, taken_over)
    row.rate = read_rate(text)
    if limit is None and before is None:
        found.beside[name] += 1
    # As a row that is saved by itself finds it out.
    row.replaces = "" if limit is None else named(limit.plan.slug, limit)
    if before:
        before.row.replaces = row.replaces
    yield from invalid(OWN_LIMITS, path, row)
    found.items[path] = Item(OWN_LIMITS, path, row)


def _taken_over(limit: Any) -> dict[str, Any]:
    return {} if limit is None else {name: getattr(limit, name) for name in TAKEN_OVER}
