"""The doors for Django REST framework: throttle classes."""

from __future__ import annotations

from rest_framework.throttling import BaseThrottle

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
