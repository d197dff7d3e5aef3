"""The page that shows at one look how the limits are doing, made of panels."""

from __future__ import annotations

from .page import DashboardAdmin

__all__ = ["DashboardAdmin"]
