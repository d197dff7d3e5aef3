"""What a file can say: which rows, by which names, with which fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from django.db import models
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from ratelimits import rows

# The section of a kind, and a name in it; of what is within another one, that one's come first.
Path = tuple[str, ...]
Field: TypeAlias = "models.Field[Any, Any]"

BATCH = 500


@dataclass(frozen=True)
class Kind:
    """The rows of one section of the file, each a table named by the field `key`.

    Those of `inner` are within each of them, and belong to it by their field `owner`.
    """

    section: str
    label: str | Promise
    model_name: str
    key: str
    inner: Kind | None = None
    owner: str = ""

    @cached_property
    def model(self) -> Any:
        return rows.model(self.model_name)

    @cached_property
    def fields(self) -> dict[str, Field]:
        """What a row says besides its name: all that can be edited of it."""
        fields = [field for field in self.model._meta.concrete_fields if field.editable]
        others = [self.key, self.owner, self.model._meta.pk.name]
        return {field.name: field for field in fields if field.name not in others}

    def make(self, name: str, values: dict[str, Any]) -> Any:
        return self.model(**{self.key: name}, **values)


LIMITS = Kind("limits", _("limit"), "PlanLimit", "name", owner="plan")
KINDS = (
    Kind("plans", _("plan"), "Plan", "slug", inner=LIMITS),
    Kind("service_limits", _("service limit"), "ServiceLimit", "name"),
    Kind("scope_costs", _("cost of the scope"), "ScopeCost", "scope"),
)
SECTIONS = {kind.section: kind for kind in KINDS}
# Those whom it is sold to. They are no part of the file, but of lists of customers.
OWN_LIMITS = Kind("limits", _("own limit"), "TenantLimit", "name", owner="tenant")
TENANTS = Kind("tenants", _("tenant"), "Tenant", "key", inner=OWN_LIMITS)


@dataclass(frozen=True)
class Item:
    """A row that is in the database, or one that a file asks for."""

    kind: Kind
    path: Path
    row: Any

    def value(self, field: str) -> Any:
        return getattr(self.row, field)

    def __str__(self) -> str:
        return place(self.path)


def tenants(alias: str, keys: Sequence[str]) -> dict[Path, Item]:
    """The rows of these tenants, and of their own limits."""
    found: dict[Path, Item] = {}
    for start in range(0, len(keys), BATCH):
        # Databases take only so many parameters.
        some = keys[start : start + BATCH]
        rows_of = TENANTS.model.objects.using(alias).filter(key__in=some).select_related("plan")
        found |= {item.path: item for item in _rows(TENANTS, rows_of)}
    return found


def stored(alias: str) -> dict[Path, Item]:
    """All rows of a database that a file can be about."""
    return {item.path: item for kind in KINDS for item in _stored(kind, alias)}


def _stored(kind: Kind, alias: str) -> Iterator[Item]:
    return _rows(kind, kind.model.objects.using(alias).order_by(kind.key))


def _rows(kind: Kind, found: Any) -> Iterator[Item]:
    inner = kind.inner
    for row in found.prefetch_related(inner.section) if inner else found:
        path = (kind.section, getattr(row, kind.key))
        yield Item(kind, path, row)
        if inner:
            yield from _within(inner, path, getattr(row, inner.section).all())


def _within(kind: Kind, path: Path, found: Iterable[Any]) -> Iterator[Item]:
    for row in sorted(found, key=lambda row: str(getattr(row, kind.key))):
        yield Item(kind, (*path, kind.section, getattr(row, kind.key)), row)


def place(path: Path, field: str = "") -> str:
    """For people: `plan "free", limit "api", rate`."""
    labels, kind = [], SECTIONS.get(path[0], TENANTS)
    for section, name in zip(path[::2], path[1::2], strict=True):
        if section != kind.section and kind.inner:
            kind = kind.inner
        labels.append(f'{kind.label} "{name}"')
    return ", ".join([*labels, field] if field else labels)
