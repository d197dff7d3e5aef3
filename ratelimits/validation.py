"""What a limit may say. Shared by the models, and free of them."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from .rates import MAX_WINDOW, Rate

MAX_BURST = 10**12
# A log keeps every request of the window.
MAX_LOG = 10_000

Errors = dict[str, str | Promise]


def validate_printable(value: str) -> None:
    """For names, which end up in header fields and log lines."""
    if not value.strip() or not value.isprintable():
        raise ValidationError(
            _("Use visible characters and spaces only, no line breaks."), code="unprintable"
        )


def limit_errors(rate: Rate, burst: int | None, algorithm: str) -> Errors:
    """What is wrong with a limit as a whole, by field."""
    errors = rate_errors(rate, algorithm)
    if burst is not None and (wrong := _burst_error(rate, burst, algorithm)):
        errors["burst"] = wrong
    return errors


def rate_errors(rate: Rate, algorithm: str) -> Errors:
    if rate.is_month and algorithm != "fixed_window":
        return {
            "rate": _(
                'Only a fixed window can follow calendar months. Write "%(quota)d/30d" instead.'
            )
            % {"quota": rate.quota}
        }
    if algorithm == "sliding_log" and rate.quota is not None and rate.quota > MAX_LOG:
        return {
            "rate": _(
                "A sliding log keeps every request, so its quota is at most %(most)d. "
                "A sliding counter or a token bucket has no such bound."
            )
            % {"most": MAX_LOG}
        }
    return {}


def _burst_error(rate: Rate, burst: int, algorithm: str) -> str | Promise | None:
    if algorithm != "token_bucket":
        return _("Only a token bucket has a burst. Leave it empty.")
    if rate.quota is None:
        return _("An unlimited rate has no burst. Leave it empty.")
    if rate.quota == 0:
        return _("A rate of 0 refuses every request. Leave the burst empty.")
    if burst * rate.window > MAX_WINDOW * rate.quota:
        return _("At this rate an empty bucket needs more than 366 days to fill. Lower the burst.")
    return None
