"""What operators edit: plans, tenants, limits of each and of the service, costs, and upstreams."""

from __future__ import annotations

from .choices import Algorithm, Mode, Per, StoreFailure, SwitchTo, UpstreamKind, UpstreamPer
from .modes import ModeSwitch
from .plans import Plan, PlanLimit
from .scopes import ScopeCost
from .services import ServiceLimit
from .store import StoreRow
from .tenants import Tenant, TenantLimit
from .upstreams import Upstream, UpstreamLimit

__all__ = [
    "Algorithm",
    "Mode",
    "ModeSwitch",
    "Per",
    "Plan",
    "PlanLimit",
    "ScopeCost",
    "ServiceLimit",
    "StoreFailure",
    "StoreRow",
    "SwitchTo",
    "Tenant",
    "TenantLimit",
    "Upstream",
    "UpstreamKind",
    "UpstreamLimit",
    "UpstreamPer",
]
