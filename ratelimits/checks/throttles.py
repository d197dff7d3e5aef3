"""Checks of throttle classes that read what DRF's read."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Warning

from ratelimits.conf import conf
from ratelimits.scopes import views

from .base import is_on


def check_num_proxies(**kwargs: Any) -> list[CheckMessage]:
    """Without NUM_PROXIES, DRF takes whatever X-Forwarded-For says for the caller."""
    names = sorted({kind.__name__ for kind in _believing()}) if is_on() else []
    if not names:
        return []
    return [
        Warning(
            f"{', '.join(names)}: callers without a login are told apart by X-Forwarded-For, and "
            "NUM_PROXIES is not set. Whoever writes another value there is another caller.",
            hint="Say how many proxies are in front of Django: "
            f'REST_FRAMEWORK = {{"NUM_PROXIES": {conf.TRUSTED_PROXIES}, ...}}',
            id="ratelimits.W024",
        )
    ]


def _believing() -> Iterator[type]:
    """Our throttle classes of views that believe the field, as far as views can be asked."""
    found = _of_views() if getattr(settings, "ROOT_URLCONF", None) else set()
    # If it is not loaded by now, no view has one.
    ours = sys.modules.get("ratelimits.throttling")
    if ours is None:
        return
    from rest_framework.settings import api_settings

    if api_settings.NUM_PROXIES is not None:
        return
    for kind in found:
        is_ours = issubclass(kind, ours.SimpleRateThrottle)
        # One of the project's own may go by something better.
        if is_ours and kind.get_ident is ours.BaseThrottle.get_ident:
            yield kind


def _of_views() -> set[Any]:
    classes = (getattr(view, "cls", None) for view in views())
    kinds = (kind for each in classes for kind in getattr(each, "throttle_classes", None) or ())
    return {kind for kind in kinds if isinstance(kind, type)}
