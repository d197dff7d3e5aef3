from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from .base import LimitModel
from .choices import Per
from .managers import PlansQuerySet

_ServiceLimitRows = models.Manager.from_queryset(PlansQuerySet)


class ServiceLimitManager(_ServiceLimitRows["ServiceLimit"]):
    def get_by_natural_key(self, name: str) -> ServiceLimit:
        return self.get(name=name)


class ServiceLimit(LimitModel):
    """A limit that protects the service itself, whatever was sold. Always a token bucket."""

    per = models.CharField(
        _("per"),
        max_length=10,
        choices=Per,
        default=Per.EVERYONE,
        help_text=_(
            "One bucket for everyone should be well above the sum of the plans: whoever comes "
            "when it is empty is refused, whatever they paid for."
        ),
    )

    objects = ServiceLimitManager()

    class Meta:
        verbose_name = _("limit of the service")
        verbose_name_plural = _("limits of the service")
        ordering = ["name"]
        base_manager_name = "objects"
        constraints = [
            models.UniqueConstraint(
                fields=["name"],
                name="ratelimits_servicelimit_name",
                violation_error_code="unique",
                violation_error_message=_("There is a limit of this name already."),
            ),
        ]

    def natural_key(self) -> tuple[str]:
        return (self.name,)
