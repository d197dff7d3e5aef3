"""Managers whose bulk edits are announced, since Django sends no signals for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from django.db import models, router
from django.dispatch import Signal

from ratelimits.signals import plans_edited, tenants_edited, upstreams_edited

M = TypeVar("M", bound=models.Model)

# Reloading everything costs less than to name more tenants or upstreams than this.
MOST_KEYS = 1000


class EditsQuerySet(models.QuerySet[M]):
    """Announces each `update`, `bulk_create`, `delete`; `bulk_update` goes through `update`."""

    def update(self, **kwargs: Any) -> int:
        touched = self.touched_by_update(kwargs)
        count = super().update(**kwargs)
        self.announce(touched)
        return count

    update.alters_data = True  # type: ignore[attr-defined]

    def delete(self) -> tuple[int, dict[str, int]]:
        touched = self.touched()
        result = super().delete()
        self.announce(touched)
        return result

    delete.alters_data = True  # type: ignore[attr-defined]
    delete.queryset_only = True  # type: ignore[attr-defined]

    def bulk_create(self, objs: Iterable[M], *args: Any, **kwargs: Any) -> list[M]:
        created = super().bulk_create(objs, *args, **kwargs)
        self.announce(self.touched_by_create(created, kwargs.get("update_fields")))
        return created

    bulk_create.alters_data = True  # type: ignore[attr-defined]

    @property
    def write_alias(self) -> str:
        rows: Any = self
        return rows._db or router.db_for_write(self.model, **rows._hints)

    def touched(self) -> list[str] | None:
        """The keys of the owners of these rows, None if they are many or unknown."""
        return None

    def touched_by_update(self, changes: dict[str, Any]) -> list[str] | None:
        return self.touched()

    def touched_by_create(self, rows: list[M], changes: Any) -> list[str] | None:
        return None

    def announce(self, touched: list[str] | None) -> None:
        raise NotImplementedError


class PlansQuerySet(EditsQuerySet[M]):
    """Plans, their limits, service limits, and costs: one edit reloads all of them."""

    def announce(self, touched: list[str] | None) -> None:
        plans_edited.send(sender=self.model, using=self.write_alias)


class KeysQuerySet(EditsQuerySet[M]):
    """Rows that belong to an owner, who is announced by its key: a tenant, or an upstream."""

    # How the owner's key is reached from a row, and the columns that make a row another's.
    key_path: str
    moved_by: frozenset[str]
    signal: Signal

    def announce(self, touched: list[str] | None) -> None:
        self.signal.send(sender=self.model, using=self.write_alias, keys=touched)

    def touched(self) -> list[str] | None:
        rows = self.using(self.write_alias).order_by().values_list(self.key_path, flat=True)
        keys = list(rows.distinct()[: MOST_KEYS + 1])
        return keys if len(keys) <= MOST_KEYS else None

    def touched_by_update(self, changes: dict[str, Any]) -> list[str] | None:
        moved = self.moved_by & changes.keys()
        keys = self.touched()
        if not moved or keys is None:
            return keys
        new = changes.get(self.key_path)
        return [*keys, new] if isinstance(new, str) else None


class OwnersQuerySet(KeysQuerySet[M]):
    """Owners themselves, by the column of their key."""

    def touched_by_create(self, rows: list[M], changes: Any) -> list[str] | None:
        if len(rows) > MOST_KEYS or self.key_path in (changes or ()):
            return None
        return [getattr(row, self.key_path) for row in rows]


class OwnedQuerySet(KeysQuerySet[M]):
    """Limits of an owner."""

    owner: str

    def touched_by_create(self, rows: list[M], changes: Any) -> list[str] | None:
        owners = {getattr(row, f"{self.owner}_id") for row in rows}
        if len(owners) > MOST_KEYS or self.moved_by & set(changes or ()):
            return None
        rows_now = self.model._base_manager.using(self.write_alias)
        keys = rows_now.filter(**{f"{self.owner}__in": owners}).order_by()
        return list(keys.values_list(self.key_path, flat=True).distinct())


class TenantsQuerySet(OwnersQuerySet[M]):
    key_path = "key"
    moved_by = frozenset({"key"})
    signal = tenants_edited


class TenantLimitsQuerySet(OwnedQuerySet[M]):
    owner = "tenant"
    key_path = "tenant__key"
    moved_by = frozenset({"tenant", "tenant_id"})
    signal = tenants_edited


class UpstreamsQuerySet(OwnersQuerySet[M]):
    key_path = "slug"
    moved_by = frozenset({"slug"})
    signal = upstreams_edited


class UpstreamLimitsQuerySet(OwnedQuerySet[M]):
    owner = "upstream"
    key_path = "upstream__slug"
    moved_by = frozenset({"upstream", "upstream_id"})
    signal = upstreams_edited


def stored_key(row: models.Model, using: str) -> str | None:
    """The owner's key in the database, for a row that is about to be saved."""
    if not row.pk:
        return None
    rows: Any = type(row)._base_manager.using(using)
    key: str | None = rows.filter(pk=row.pk).values_list(rows.key_path, flat=True).first()
    return key
