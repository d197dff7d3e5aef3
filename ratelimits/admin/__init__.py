"""The operator's pages in Django's admin."""

from __future__ import annotations

from .modes import ModeSwitchAdmin
from .plans import PlanAdmin
from .scopes import ScopeCostAdmin
from .services import ServiceLimitAdmin
from .tenants import TenantAdmin
from .upstreams import UpstreamAdmin

__all__ = [
    "ModeSwitchAdmin",
    "PlanAdmin",
    "ScopeCostAdmin",
    "ServiceLimitAdmin",
    "TenantAdmin",
    "UpstreamAdmin",
]
