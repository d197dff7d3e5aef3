"""The operator's pages in Django's admin."""

from __future__ import annotations

from .plans import PlanAdmin
from .scopes import ScopeCostAdmin
from .services import ServiceLimitAdmin
from .tenants import TenantAdmin

__all__ = ["PlanAdmin", "ScopeCostAdmin", "ServiceLimitAdmin", "TenantAdmin"]
