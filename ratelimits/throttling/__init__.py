"""The doors for Django REST framework: throttle classes."""

from __future__ import annotations

from .plan import PlanRateThrottle
from .refusing import PlanThrottled
from .simple import AnonRateThrottle, ScopedRateThrottle, SimpleRateThrottle, UserRateThrottle

__all__ = [
    "AnonRateThrottle",
    "PlanRateThrottle",
    "PlanThrottled",
    "ScopedRateThrottle",
    "SimpleRateThrottle",
    "UserRateThrottle",
]
