"""The fields that limits of plans, tenants and the service share."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ratelimits.fields import BadRate, RateField
from ratelimits.rates import Rate
from ratelimits.validation import MAX_BURST, Errors, limit_errors, validate_printable

from .choices import Algorithm, Mode, StoreFailure


class RuleModel(models.Model):
    """So many units in a time."""

    name = models.CharField(
        _("name"),
        max_length=100,
        validators=[validate_printable],
        help_text=_("Callers see it in the RateLimit fields. Renaming starts a new count."),
    )
    rate = RateField(
        _("rate"),
        help_text=_(
            "For example 10/s, 100/m, 10/5m, 10000/d, 100000/month or unlimited. "
            "0/m refuses every request."
        ),
    )
    burst = models.PositiveBigIntegerField(
        _("burst"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_BURST)],
        help_text=_("How much a rested caller can take at once. Empty: as much as the rate says."),
    )

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.name}: {self.describe()}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        # The field refuses it too, but inside a transaction, which would break with it.
        fields = kwargs.get("update_fields")
        rate = self.__dict__.get("rate")
        if isinstance(rate, BadRate) and (fields is None or "rate" in fields):
            raise ValidationError({"rate": rate.reason}, code="invalid")
        super().save(*args, **kwargs)

    def clean(self) -> None:
        super().clean()
        # A bad rate has its own message already.
        if isinstance(self.rate, Rate):
            errors = self.rule_errors(self.rate)
            if errors:
                raise ValidationError({**errors})

    def rule_errors(self, rate: Rate) -> Errors:
        """What is wrong with it as a whole, by field."""
        raise NotImplementedError

    def describe(self) -> str:
        """In words: `100 requests per minute, burst 20`."""
        if not isinstance(self.rate, Rate):
            return gettext("not a rate: %(text)s") % {"text": self.rate}
        if self.burst is None:
            return self.rate.describe()
        return gettext("%(rate)s, burst %(burst)s") % {
            "rate": self.rate.describe(),
            "burst": self.burst,
        }


class LimitModel(RuleModel):
    """One rule for callers. A token bucket, unless a subclass offers the choice."""

    scope = models.CharField(
        _("scope"),
        max_length=100,
        blank=True,
        default="",
        validators=[validate_printable],
        help_text=_("The kind of request it covers, such as search. Empty: all requests."),
    )
    mode = models.CharField(
        _("mode"),
        max_length=10,
        choices=Mode,
        default=Mode.ENFORCE,
        help_text=_("Shadow counts and reports, but never refuses."),
    )

    class Meta:
        abstract = True

    def rule_errors(self, rate: Rate) -> Errors:
        return limit_errors(rate, self.burst, self.counts_by)

    @property
    def counts_by(self) -> str:
        """The algorithm, also of limits that have no choice of it."""
        return str(getattr(self, "algorithm", Algorithm.TOKEN_BUCKET))


class SoldLimitModel(LimitModel):
    """A rule that is counted for each tenant."""

    algorithm = models.CharField(
        _("algorithm"),
        max_length=20,
        choices=Algorithm,
        default=Algorithm.TOKEN_BUCKET,
    )
    on_store_failure = models.CharField(
        _("on store failure"),
        max_length=10,
        blank=True,
        choices=StoreFailure,
        default=StoreFailure.DEFAULT,
        help_text=_("What happens to requests while the counts can't be reached."),
    )

    class Meta:
        abstract = True
