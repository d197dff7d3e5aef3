"""Imports every module of an installed ratelimits: python installed.py EXTRA...

To be run in the directory of a project. A module that can't be imported must need a package
that no installed extra brings.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from importlib.util import find_spec

import django

# What each extra is there for, and the modules that need a package which nobody has to have.
BROUGHT = {
    "drf": ["rest_framework"],
    "prometheus": ["prometheus_client"],
    "redis": ["redis", "django_redis", "hiredis"],
    "spectacular": ["rest_framework", "drf_spectacular"],
}
NEEDED = {
    "celery": ["client.celery"],
    "drf_spectacular": ["contrib.spectacular"],
    "prometheus_client": ["contrib.prometheus"],
    "pymemcache": ["stores.memcached"],
    "redis": ["stores.redis", "stores.gates_redis"],
    "pytest": ["testing.plugin"],
    "requests": ["client.requests"],
    "rest_framework": ["contrib.rest_framework", "rendering", "throttling"],
}


def main(extras: list[str]) -> str | None:
    sys.path.insert(0, os.getcwd())
    os.environ["DJANGO_SETTINGS_MODULE"] = "example.settings"
    django.setup()
    import ratelimits

    missing = [name for extra in extras for name in BROUGHT[extra] if find_spec(name) is None]
    if missing:
        return f"{', '.join(extras)}: {', '.join(missing)} is not installed"
    found = pkgutil.walk_packages(ratelimits.__path__, "ratelimits.", onerror=lambda name: None)
    names = [module.name for module in found]
    wrong = [why for why in map(problem, names) if why]
    print(f"{len(names)} modules, with {', '.join(extras) or 'no extra'}")
    return "\n".join(wrong) or None


def problem(name: str) -> str | None:
    """Why a module can't be imported, unless it may lack what it lacks."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        needed = tuple(f"ratelimits.{each}" for each in NEEDED.get(error.name or "", ()))
        return None if needed and name.startswith(needed) else f"{name}: {error}"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
