"""Respecting the limits of other people's APIs."""

from __future__ import annotations

from .api import Api, upstream
from .errors import NeverPasses, RetryLater, UnknownUpstream

__all__ = ["Api", "NeverPasses", "RetryLater", "UnknownUpstream", "upstream"]
