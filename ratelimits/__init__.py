"""Rate limits for Django APIs: plans and tenants as models, counted exactly."""

from __future__ import annotations

__version__ = "0.1.0"
