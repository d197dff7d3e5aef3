"""Rates as DRF's throttles read them, and as we write them."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext
from rest_framework import throttling

from ratelimits.rates import Rate


def read_rate(text: Any) -> tuple[int | None, int | None]:
    """Requests and seconds, both None for no limit.

    DRF looks at the first letter of the period only, so that its months are minutes. Raises
    ImproperlyConfigured for these, and whatever DRF raises for what it can't read.
    """
    if text is None:
        return None, None
    try:
        rate = Rate.parse(text)
    except ValueError:
        usual: Any = throttling.SimpleRateThrottle.parse_rate
        read: tuple[int, int] = usual(None, text)
        return read
    if rate.is_month:
        told = gettext(
            'The rate "%(rate)s" is %(quota)d per minute to Django REST framework. '
            'Write "%(quota)d/m", or "%(quota)d/30d" for thirty days.'
        )
        raise ImproperlyConfigured(told % {"rate": text, "quota": rate.quota})
    return (None, None) if rate.is_unlimited else (rate.quota, rate.window)
