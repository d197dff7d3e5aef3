from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from ratelimits.validation import validate_printable

from .base import SoldLimitModel
from .managers import PlansQuerySet

_PlanRows = models.Manager.from_queryset(PlansQuerySet)


class PlanManager(_PlanRows["Plan"]):
    def get_by_natural_key(self, slug: str) -> Plan:
        return self.get(slug=slug)


class Plan(models.Model):
    """A named set of limits, sold to many tenants."""

    slug = models.SlugField(_("slug"), max_length=100, unique=True)
    name = models.CharField(_("name"), max_length=100, validators=[validate_printable])
    description = models.TextField(_("description"), blank=True, default="")
    is_default = models.BooleanField(
        _("default"),
        default=False,
        help_text=_("For tenants that have no plan of their own."),
    )
    is_anonymous = models.BooleanField(
        _("anonymous"),
        default=False,
        help_text=_("For callers without a tenant, each address by itself."),
    )

    objects = PlanManager()

    class Meta:
        verbose_name = _("plan")
        verbose_name_plural = _("plans")
        ordering = ["name"]
        # So that also edits through related managers are announced.
        base_manager_name = "objects"
        constraints = [
            models.UniqueConstraint(
                fields=["is_default"],
                condition=Q(is_default=True),
                name="ratelimits_one_default_plan",
                violation_error_code="unique",
                violation_error_message=_("Another plan is the default one already."),
            ),
            models.UniqueConstraint(
                fields=["is_anonymous"],
                condition=Q(is_anonymous=True),
                name="ratelimits_one_anonymous_plan",
                violation_error_code="unique",
                violation_error_message=_("Another plan is the anonymous one already."),
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def natural_key(self) -> tuple[str]:
        return (self.slug,)


_PlanLimitRows = models.Manager.from_queryset(PlansQuerySet)


class PlanLimitManager(_PlanLimitRows["PlanLimit"]):
    def get_by_natural_key(self, slug: str, name: str) -> PlanLimit:
        return self.get(plan__slug=slug, name=name)


class PlanLimit(SoldLimitModel):
    """A limit of everyone on a plan, counted for each tenant by itself."""

    plan = models.ForeignKey(
        Plan, on_delete=models.CASCADE, related_name="limits", verbose_name=_("plan")
    )

    objects = PlanLimitManager()

    class Meta:
        verbose_name = _("limit of a plan")
        verbose_name_plural = _("limits of plans")
        ordering = ["name"]
        base_manager_name = "objects"
        constraints = [
            models.UniqueConstraint(
                fields=["plan", "name"],
                name="ratelimits_planlimit_name",
                violation_error_message=_("The plan has a limit of this name already."),
            ),
        ]

    def natural_key(self) -> tuple[str, str]:
        return (*self.plan.natural_key(), self.name)
