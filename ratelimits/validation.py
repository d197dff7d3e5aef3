"""What a limit may say. Shared by the models, and free of them."""

from __future__ import annotations

import re
from math import isfinite
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from .rates import MAX_WINDOW, Rate

MAX_BURST = 10**12
# Seconds. A call that leaves later than this for a guard would be a limit of its own.
MOST_GUARD = 10
# A log keeps every request of the window.
MAX_LOG = 10_000

# Statuses of answers that refuse a call: not those of success, and what some vendors make up.
STATUSES = range(300, 1000)

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


def pace_errors(rate: Rate, burst: int | None, kind: str) -> Errors:
    """What is wrong with a limit of somebody else's API, by field."""
    if rate.is_unlimited:
        return {"rate": _("What is unlimited needs no limit here. Delete it instead.")}
    if rate.is_month:
        told = _(
            "Nobody here knows when their month begins, so that calls can't follow it. "
            'Write "%(quota)d/30d" instead.'
        )
        return {"rate": told % {"quota": rate.quota}}
    if rate.quota == 0:
        return {"rate": _("With a rate of 0 no call would ever leave.")}
    if burst is None:
        return {}
    if kind != "bucket":
        return {"burst": _("Only a bucket has a burst. Leave it empty.")}
    wrong = _burst_error(rate, burst, "token_bucket")
    return {"burst": wrong} if wrong else {}


def statuses_of(text: str) -> frozenset[int]:
    """The statuses in a text such as `403, 529`. Raises ValidationError for anything else."""
    words = [word for word in re.split(r"[,\s]+", text) if word]
    for word in words:
        if not re.fullmatch("[0-9]{3}", word) or int(word) not in STATUSES:
            raise ValidationError(
                _("“%(word)s” is not the status of a refusal, which is from 300 to 999."),
                code="status",
                params={"word": word},
            )
    return frozenset(map(int, words))


def validate_statuses(value: str) -> None:
    statuses_of(value)


def validate_base_url(value: str) -> None:
    """For where an API is: in one's own network, too, which Django's validator refuses."""
    try:
        parts = urlsplit(value)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fine = False
    if not fine or not value.isprintable() or " " in value:
        raise ValidationError(_("Write it as https://api.example.com/v1."), code="url")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValidationError(_("Leave out credentials and whatever follows the path."), code="url")


def validate_seconds(value: float) -> None:
    """For durations, which no comparison bounds if they are no number."""
    if not isfinite(value):
        raise ValidationError(_("Write a number of seconds."), code="seconds")
