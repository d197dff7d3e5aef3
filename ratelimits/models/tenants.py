from __future__ import annotations

from contextlib import suppress
from copy import copy
from datetime import MAXYEAR
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.signals import pre_save
from django.dispatch import receiver
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from ratelimits.fields import read_rate

from .base import SoldLimitModel
from .managers import TenantLimitsQuerySet, TenantsQuerySet, stored_key
from .plans import Plan

_TenantRows = models.Manager.from_queryset(TenantsQuerySet)


class TenantManager(_TenantRows["Tenant"]):
    def get_by_natural_key(self, key: str) -> Tenant:
        return self.get(key=key)


class Tenant(models.Model):
    """Who pays. Only those that differ from the default plan need a row."""

    key = models.CharField(
        _("key"),
        max_length=255,
        unique=True,
        help_text=_("As the TENANT setting gives it, such as user:7."),
    )
    name = models.CharField(_("name"), max_length=200, blank=True, default="")
    plan = models.ForeignKey(
        Plan,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="tenants",
        verbose_name=_("plan"),
        help_text=_("Empty: the default plan."),
    )
    notes = models.TextField(_("notes"), blank=True, default="")

    objects = TenantManager()

    # The key in the database when the row was last about to be saved.
    stored_key: str | None = None

    class Meta:
        verbose_name = _("tenant")
        verbose_name_plural = _("tenants")
        ordering = ["key"]
        permissions = [("reset_tenant", "Can reset what a tenant has used")]
        base_manager_name = "objects"

    def __str__(self) -> str:
        return f"{self.name} ({self.key})" if self.name else self.key

    def natural_key(self) -> tuple[str]:
        return (self.key,)

    def edited_keys(self) -> list[str]:
        """The keys whose limits the last save or delete changed: two after a renaming."""
        return sorted({self.key, self.stored_key or self.key})


_TenantLimitRows = models.Manager.from_queryset(TenantLimitsQuerySet)


class TenantLimitManager(_TenantLimitRows["TenantLimit"]):
    def get_by_natural_key(self, key: str, name: str) -> TenantLimit:
        return self.get(tenant__key=key, name=name)


class TenantLimit(SoldLimitModel):
    """A tenant's own limit: it replaces the plan's limit of the same name, or adds one.

    One that was raised for a while knows what it was before, by the fields ending in `_after`,
    and is that again from `expires_at` on. `replaces` tells in words which limit of the plan it
    replaced when it was last saved, so that one whose plan lost that can be told from an added one.
    """

    tenant = models.ForeignKey(
        Tenant, on_delete=models.CASCADE, related_name="limits", verbose_name=_("tenant")
    )
    expires_at = models.DateTimeField(
        _("expires at"),
        null=True,
        blank=True,
        help_text=_("From then on it is as if it were not there. Empty: never."),
    )
    reason = models.CharField(_("reason"), max_length=200, blank=True, default="")
    rate_after = models.CharField(max_length=50, blank=True, default="", editable=False)
    burst_after = models.PositiveBigIntegerField(null=True, editable=False)
    reason_after = models.CharField(max_length=200, blank=True, default="", editable=False)
    replaces = models.CharField(max_length=300, blank=True, default="", editable=False)

    objects = TenantLimitManager()

    stored_key: str | None = None

    class Meta:
        verbose_name = _("limit of a tenant")
        verbose_name_plural = _("limits of tenants")
        ordering = ["name"]
        base_manager_name = "objects"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "name"],
                name="ratelimits_tenantlimit_name",
                violation_error_message=_("The tenant has a limit of this name already."),
            ),
        ]

    def natural_key(self) -> tuple[str, str]:
        return (*self.tenant.natural_key(), self.name)

    def clean(self) -> None:
        super().clean()
        # In another time zone it would be in a year that does not exist.
        if self.expires_at is not None and self.expires_at.year == MAXYEAR:
            raise ValidationError({"expires_at": _("That is too far away.")})

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.expires_at is not None and self.expires_at <= timezone.now()

    def afterwards(self) -> TenantLimit | None:
        """The limit that it is when it has ended; None if it is as if it were not there."""
        if self.expires_at is None or not self.rate_after:
            return None
        limit = copy(self)
        limit.rate, limit.burst = read_rate(self.rate_after), self.burst_after
        limit.reason, limit.expires_at = self.reason_after, None
        limit.rate_after, limit.burst_after, limit.reason_after = "", None, ""
        return limit

    def edited_keys(self) -> list[str]:
        """The keys whose limits the last save or delete changed: two after a move."""
        keys = {self.stored_key} if self.stored_key else set()
        # A fixture may name the tenant later.
        with suppress(Tenant.DoesNotExist):
            keys.add(self.tenant.key)
        return sorted(keys)


# A signal and not save(), which fixtures do not call.
@receiver(pre_save, sender=Tenant, dispatch_uid="ratelimits.tenant_key")
@receiver(pre_save, sender=TenantLimit, dispatch_uid="ratelimits.tenantlimit_key")
def _remember_stored_key(instance: Tenant | TenantLimit, using: str, **kwargs: Any) -> None:
    """Whoever had the row before has to be told of the edit too."""
    instance.stored_key = stored_key(instance, using)
