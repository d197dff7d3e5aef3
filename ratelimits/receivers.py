"""From Django's signals, and ours for bulk changes, to edits."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.core.signals import setting_changed
from django.db import transaction
from django.db.models.signals import post_delete, post_migrate, post_save, pre_save

from .client.edits import UpstreamEdit
from .client.rows import slugs
from .client.upstreams import forget_all
from .edits import Edit, forget_rows, note, tenants
from .exceptions import CatalogUnavailable
from .logs import logger
from .models import (
    ModeSwitch,
    Plan,
    PlanLimit,
    ScopeCost,
    ServiceLimit,
    Tenant,
    TenantLimit,
    Upstream,
    UpstreamLimit,
)
from .overrides import replaced_by
from .signals import mode_switched, plans_edited, tenants_edited, upstreams_edited


def _plans(*, sender: Any, using: str, **kwargs: Any) -> None:
    note(Edit(plans=True, mode=sender is ModeSwitch), using)


def _switched(*, instance: ModeSwitch, created: bool, using: str, **kwargs: Any) -> None:
    if created:
        transaction.on_commit(lambda: _tell(instance), using=using)


def _tell(row: ModeSwitch) -> None:
    logger.warning(
        "The mode of all limits was switched to %r until %s, by %r: %s",
        str(row.mode),
        row.until.isoformat(),
        row.by,
        row.reason,
    )
    mode_switched.send_robust(
        ModeSwitch, mode=row.mode, until=row.until, by=row.by, reason=row.reason
    )


def _tenant(*, instance: Tenant, using: str, **kwargs: Any) -> None:
    note(tenants(instance.edited_keys()), using)


def _tenant_limit(*, instance: TenantLimit, using: str, origin: Any = None, **kwargs: Any) -> None:
    # A tenant that is deleted with its limits is announced itself.
    if getattr(origin, "model", type(origin)) is not Tenant:
        note(tenants(instance.edited_keys()), using)


def _note_replaced(*, instance: TenantLimit, raw: bool = False, **kwargs: Any) -> None:
    """Before it is saved: what a tenant's limit replaces now. A fixture says that itself."""
    if not raw:
        # Whatever is wrong with the plans is for requests to tell.
        with suppress(CatalogUnavailable, Tenant.DoesNotExist):
            instance.replaces = replaced_by(instance.tenant.key, instance.name)


def _tenants(*, using: str, keys: list[str] | None, **kwargs: Any) -> None:
    note(tenants(keys), using)


def _upstream(
    *, instance: Upstream | UpstreamLimit, using: str, origin: Any = None, **kwargs: Any
) -> None:
    # An upstream that is deleted with its limits is announced itself.
    if type(instance) is Upstream or getattr(origin, "model", type(origin)) is not Upstream:
        note(UpstreamEdit(tuple(instance.edited_keys())), using)


def _upstreams(*, using: str, keys: list[str] | None, **kwargs: Any) -> None:
    note(UpstreamEdit(tuple(slugs(using) if keys is None else keys)), using)


def _everything(**kwargs: Any) -> None:
    """The tables were made, changed or emptied."""
    _clear()


def _clear() -> None:
    forget_rows()
    forget_all()


def _setting(*, setting: str, **kwargs: Any) -> None:
    # Digests and modes are part of what is prepared.
    if setting in ("RATELIMITS", "SECRET_KEY", "DATABASE_ROUTERS"):
        _clear()


def connect() -> None:
    """Called once, when the apps are ready."""
    for signal in (post_save, post_delete):
        for model in (Plan, PlanLimit, ServiceLimit, ScopeCost, ModeSwitch):
            signal.connect(_plans, sender=model, dispatch_uid=f"ratelimits.{model.__name__}")
        signal.connect(_tenant, sender=Tenant, dispatch_uid="ratelimits.Tenant")
        signal.connect(_tenant_limit, sender=TenantLimit, dispatch_uid="ratelimits.TenantLimit")
        for owned in (Upstream, UpstreamLimit):
            signal.connect(_upstream, sender=owned, dispatch_uid=f"ratelimits.{owned.__name__}")
    # After the edit, so that who hears of it finds it in force.
    post_save.connect(_switched, sender=ModeSwitch, dispatch_uid="ratelimits.switched")
    pre_save.connect(_note_replaced, sender=TenantLimit, dispatch_uid="ratelimits.replaced")
    plans_edited.connect(_plans, dispatch_uid="ratelimits.plans_edited")
    tenants_edited.connect(_tenants, dispatch_uid="ratelimits.tenants_edited")
    upstreams_edited.connect(_upstreams, dispatch_uid="ratelimits.upstreams_edited")
    post_migrate.connect(_everything, dispatch_uid="ratelimits.post_migrate")
    setting_changed.connect(_setting, dispatch_uid="ratelimits.catalog")
