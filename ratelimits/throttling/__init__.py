"""The doors for Django REST framework: throttle classes."""

from __future__ import annotations

from ratelimits.extras import lacking

try:
    from rest_framework.throttling import BaseThrottle
except ModuleNotFoundError as error:
    raise lacking(error, "drf") from error

from .plan import PlanRateThrottle
from .refusing import PlanThrottled
from .simple import AnonRateThrottle, ScopedRateThrottle, SimpleRateThrottle, UserRateThrottle

__all__ = [
    "AnonRateThrottle",
    "BaseThrottle",
    "PlanRateThrottle",
    "PlanThrottled",
    "ScopedRateThrottle",
    "SimpleRateThrottle",
    "UserRateThrottle",
]
