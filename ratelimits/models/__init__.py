"""What operators edit: plans, tenants, and the limits of each and of the whole service."""

from __future__ import annotations

from .choices import Algorithm, Mode, Per, StoreFailure
from .plans import Plan, PlanLimit
from .services import ServiceLimit
from .store import StoreRow
from .tenants import Tenant, TenantLimit

__all__ = [
    "Algorithm",
    "Mode",
    "Per",
    "Plan",
    "PlanLimit",
    "ServiceLimit",
    "StoreFailure",
    "StoreRow",
    "Tenant",
    "TenantLimit",
]
