"""System checks: what is wrong with a project's settings, before a request finds out.

The ids are stable. E001 to E009 and W001 to W009 are about RATELIMITS itself, those from 010
about caches, from 020 about middleware and throttle classes, from 030 about plans.
"""

from __future__ import annotations

from django.core.checks import Tags, register

from .caches import check_cache
from .cors import check_exposed
from .memcached import check_shared_memcached
from .middleware import check_middleware
from .plans import check_plans, check_rows, check_unasked
from .schemas import check_key_function, check_tenant_apps
from .settings import check_clock, check_settings
from .sharing import check_pool, check_shared_cache
from .throttles import check_num_proxies

# For `manage.py check --tag ratelimits`.
OURS = "ratelimits"


def register_all() -> None:
    """Called once, when the apps are ready."""
    register(check_settings, Tags.security, OURS)
    register(check_clock, Tags.security, OURS)
    register(check_cache, Tags.caches, OURS)
    register(check_key_function, Tags.caches, OURS)
    register(check_tenant_apps, OURS)
    register(check_pool, Tags.caches, OURS)
    register(check_shared_cache, Tags.caches, OURS, deploy=True)
    register(check_shared_memcached, Tags.caches, OURS, deploy=True)
    register(check_middleware, Tags.security, OURS)
    register(check_exposed, Tags.security, OURS)
    register(check_num_proxies, Tags.security, OURS, deploy=True)
    register(check_plans, Tags.database, OURS)
    register(check_rows, Tags.database, OURS)
    register(check_unasked, OURS)
