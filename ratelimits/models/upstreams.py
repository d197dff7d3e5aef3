from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.signals import pre_save
from django.dispatch import receiver
from django.utils.translation import gettext_lazy as _

from ratelimits.fields import RateField
from ratelimits.rates import Rate
from ratelimits.validation import (
    MAX_BURST,
    MOST_GUARD,
    Errors,
    pace_errors,
    validate_base_url,
    validate_printable,
    validate_seconds,
    validate_statuses,
)

from .base import RuleModel
from .choices import UpstreamKind, UpstreamPer
from .managers import UpstreamLimitsQuerySet, UpstreamsQuerySet, stored_key

_UpstreamRows = models.Manager.from_queryset(UpstreamsQuerySet)


class UpstreamManager(_UpstreamRows["Upstream"]):
    def get_by_natural_key(self, slug: str) -> Upstream:
        return self.get(slug=slug)


class Upstream(models.Model):
    """Somebody else's API, and how calls to it behave. `max_wait` and `guard` are seconds."""

    slug = models.SlugField(
        _("slug"),
        max_length=100,
        unique=True,
        help_text=_("The name that the code calls it by. Renaming starts a new count."),
    )
    name = models.CharField(
        _("name"), max_length=100, blank=True, default="", validators=[validate_printable]
    )
    base_url = models.CharField(
        _("base URL"),
        max_length=200,
        blank=True,
        default="",
        validators=[validate_base_url],
        help_text=_("Where the API is, such as https://api.example.com/v1. No credentials."),
    )
    max_wait = models.FloatField(
        _("longest wait"),
        default=5.0,
        validators=[validate_seconds, MinValueValidator(0)],
        help_text=_(
            "Seconds that a call may wait for its turn. One that would have to wait for longer "
            "is told so at once, so that a queue can take it. 0: nobody waits."
        ),
    )
    guard = models.FloatField(
        _("guard"),
        default=0.05,
        validators=[validate_seconds, MinValueValidator(0), MaxValueValidator(MOST_GUARD)],
        help_text=_(
            "Seconds that calls leave later than they must, since some are faster on their way "
            "than those before them: as much as the times of their way differ."
        ),
    )
    retry_statuses = models.CharField(
        _("statuses of refusals"),
        max_length=100,
        blank=True,
        default="",
        validators=[validate_statuses],
        help_text=_(
            "Answers besides 429 that mean the limit was exceeded and nothing was done, such as "
            "403, 529. One that means something else too counts if its fields speak of a limit."
        ),
    )

    objects = UpstreamManager()

    # The slug in the database when the row was last about to be saved.
    stored_key: str | None = None

    class Meta:
        verbose_name = _("upstream")
        verbose_name_plural = _("upstreams")
        ordering = ["slug"]
        # So that also edits through related managers are announced.
        base_manager_name = "objects"
        constraints = [
            models.CheckConstraint(
                condition=Q(max_wait__gte=0), name="ratelimits_upstream_max_wait"
            ),
            models.CheckConstraint(
                condition=Q(guard__gte=0, guard__lte=MOST_GUARD), name="ratelimits_upstream_guard"
            ),
        ]

    def __str__(self) -> str:
        return self.name or self.slug

    def natural_key(self) -> tuple[str]:
        return (self.slug,)

    def edited_keys(self) -> list[str]:
        """The slugs whose terms the last save or delete changed: two after a renaming."""
        return sorted({self.slug, self.stored_key or self.slug})


_UpstreamLimitRows = models.Manager.from_queryset(UpstreamLimitsQuerySet)


class UpstreamLimitManager(_UpstreamLimitRows["UpstreamLimit"]):
    def get_by_natural_key(self, slug: str, name: str) -> UpstreamLimit:
        return self.get(upstream__slug=slug, name=name)


class UpstreamLimit(RuleModel):
    """A limit that an upstream sets us, or the share that each customer has of it."""

    upstream = models.ForeignKey(
        Upstream, on_delete=models.CASCADE, related_name="limits", verbose_name=_("upstream")
    )
    name = models.CharField(
        _("name"),
        max_length=100,
        validators=[validate_printable],
        help_text=_("For those who read why a call waits. Renaming keeps what was used."),
    )
    rate = RateField(
        _("rate"), help_text=_("As they tell it, for example 10/s, 100/m, 5000/h or 10000/d.")
    )
    burst = models.PositiveBigIntegerField(
        _("burst"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_BURST)],
        help_text=_("How many calls a bucket takes at once. Empty: as many as the rate says."),
    )
    kind = models.CharField(
        _("kind"),
        max_length=10,
        choices=UpstreamKind,
        # The other one sends up to twice the quota in a window of theirs.
        default=UpstreamKind.WINDOW,
        help_text=_("A window, unless they say that theirs is a bucket that refills all the time."),
    )
    per = models.CharField(
        _("per"),
        max_length=10,
        choices=UpstreamPer,
        default=UpstreamPer.CREDENTIAL,
        help_text=_("A share for each customer keeps one of them from using up a credential."),
    )

    objects = UpstreamLimitManager()

    stored_key: str | None = None

    class Meta:
        verbose_name = _("limit of an upstream")
        verbose_name_plural = _("limits of upstreams")
        ordering = ["name"]
        base_manager_name = "objects"
        constraints = [
            models.UniqueConstraint(
                fields=["upstream", "name"],
                name="ratelimits_upstreamlimit_name",
                violation_error_message=_("The upstream has a limit of this name already."),
            ),
        ]

    def natural_key(self) -> tuple[str, str]:
        return (*self.upstream.natural_key(), self.name)

    def rule_errors(self, rate: Rate) -> Errors:
        return pace_errors(rate, self.burst, self.kind)

    def edited_keys(self) -> list[str]:
        """The slugs whose terms the last save or delete changed: two after a move."""
        keys = {self.stored_key} if self.stored_key else set()
        # A fixture may name the upstream later.
        with suppress(Upstream.DoesNotExist):
            keys.add(self.upstream.slug)
        return sorted(keys)


# A signal and not save(), which fixtures do not call.
@receiver(pre_save, sender=Upstream, dispatch_uid="ratelimits.upstream_key")
@receiver(pre_save, sender=UpstreamLimit, dispatch_uid="ratelimits.upstreamlimit_key")
def _remember_stored_key(instance: Upstream | UpstreamLimit, using: str, **kwargs: Any) -> None:
    """Whoever calls it by the slug before has to be told of the edit too."""
    instance.stored_key = stored_key(instance, using)
