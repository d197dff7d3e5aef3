"""The settings: one dictionary, RATELIMITS, read when used.

`DEFAULTS` documents each. `conf.NAME` is the value in force.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from django.conf import settings
from django.core.signals import setting_changed
from django.utils.module_loading import import_string

DEFAULTS: dict[str, Any] = {
    # "enforce", "shadow" (count and report, never refuse) or "off", for everything.
    "MODE": "enforce",
    # An alias in CACHES. The store follows from its backend.
    "CACHE": "default",
    # Dotted path(s): callable(request) -> str | None. The first that answers is the tenant.
    "TENANT": ["ratelimits.tenants.by_user"],
    # Dotted path: callable(tenant_key) -> plan slug | None, asked when a tenant is loaded, for
    # projects whose billing already knows the plan.
    "PLAN": None,
    # Dotted path: callable(tenant_key) -> text or (text, url), for the admin.
    "TENANT_LABEL": None,
    # Dotted path: callable(request) -> bool. True: nothing is taken and nothing published.
    "EXEMPT": None,
    # Path prefixes on which the middleware enforces the plan for views with no other door.
    "PROTECT": [],
    # How many entries of X-Forwarded-For to believe, from the right. 0: ignore the header.
    "TRUSTED_PROXIES": 0,
    # IPv6 addresses count by this prefix, since one customer owns at least a /64.
    "IPV6_PREFIX": 64,
    # Which fields to send: "ratelimit", "ratelimit-legacy", "x-ratelimit".
    "HEADERS": ["ratelimit", "ratelimit-legacy"],
    # Own type URIs of problems: {"quota-exceeded": "https://...", ...}.
    "PROBLEM_TYPES": {},
    # Dotted path: callable(request, decision) -> HttpResponse, for refusals outside of DRF.
    "RESPONSE": None,
    # Key of the digests in store keys. None: derived from SECRET_KEY.
    "KEY_SECRET": None,
    # Seconds to wait for the store.
    "STORE_TIMEOUT": 0.05,
    # While the store is away: "local" counts in the process, "allow", or "deny".
    "STORE_FAILURE": "local",
    # How many processes share a limit that is counted locally: each has its part of it then.
    # None: as many as last counted each other through the store (see stores/processes.py).
    "WORKERS": None,
    # Seconds at most that a caller who was refused is refused again without asking the store,
    # though somebody else may have raised its limit or reset it. 0: always ask.
    "LOCAL_REFUSALS": 0.25,
    # Seconds that limits are kept without being read again. Edits do not wait for it.
    "CATALOG_TTL": 30,
    # Whose clock counts: "store", or "process" for tests with a frozen one.
    "CLOCK": "store",
}


# What goes before the settings for a while, the last one first of all: see ratelimits.testing.
above: list[dict[str, Any]] = []


class Settings:
    """Attribute access to the setting in force.

    They are merged at the first use, and again when Django's override_settings changes them.
    """

    def __getattr__(self, name: str) -> Any:
        # If they are forgotten meanwhile, by another thread, so is what is noted here.
        noted = vars(self)
        merged = {**DEFAULTS, **(getattr(settings, "RATELIMITS", None) or {})}
        for values in above:
            merged.update(values)
        try:
            value = merged[name]
        except KeyError:
            raise AttributeError(f'RATELIMITS has no setting "{name}".') from None
        # From now on an attribute is found without this method.
        noted.update(merged)
        return value

    def imported(self, name: str) -> Callable[..., Any] | None:
        """The callable behind a dotted path (or a callable itself), None if not set."""
        return resolve(getattr(self, name))

    def is_above(self, name: str) -> bool:
        """Whether something goes before a setting, and before whoever else may decide on it."""
        return any(name in values for values in above)

    def forget(self) -> None:
        """Merge them again at the next use."""
        self.__dict__ = {}


conf = Settings()


def resolve(value: Any) -> Callable[..., Any] | None:
    """The callable behind a dotted path; a callable is given back as it is."""
    if value is None:
        return None
    found: Callable[..., Any] = value if callable(value) else _import(value)
    return found


@cache
def _import(path: str) -> Any:
    return import_string(path)


def _forget(*, setting: str, **kwargs: Any) -> None:
    if setting in ("RATELIMITS", "SECRET_KEY"):
        conf.forget()


setting_changed.connect(_forget, dispatch_uid="ratelimits.conf")
