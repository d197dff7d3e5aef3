from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from ratelimits.validation import validate_printable

from .managers import PlansQuerySet

_ScopeCostRows = models.Manager.from_queryset(PlansQuerySet)


class ScopeCostManager(_ScopeCostRows["ScopeCost"]):
    def get_by_natural_key(self, scope: str) -> ScopeCost:
        return self.get(scope=scope)


class ScopeCost(models.Model):
    """What one request of a scope costs, whatever the code says."""

    scope = models.CharField(
        _("scope"),
        max_length=100,
        unique=True,
        validators=[validate_printable],
        help_text=_("The kind of request, such as search, by the name that the code gives it."),
    )
    cost = models.PositiveIntegerField(
        _("cost"),
        help_text=_(
            "Units that one request of the scope takes, also where the code computes them for "
            "each request. 0: such requests are free."
        ),
    )
    reason = models.CharField(_("reason"), max_length=200, blank=True, default="")

    objects = ScopeCostManager()

    class Meta:
        verbose_name = _("cost of a scope")
        verbose_name_plural = _("costs of scopes")
        ordering = ["scope"]
        base_manager_name = "objects"
        constraints = [
            # No scope is all requests, which have no cost in common.
            models.CheckConstraint(condition=~Q(scope=""), name="ratelimits_scopecost_scope"),
        ]

    def __str__(self) -> str:
        return f"{self.scope}: {self.cost}"

    @property
    def name(self) -> str:
        """What messages about rows call it."""
        return self.scope

    def natural_key(self) -> tuple[str]:
        return (self.scope,)
