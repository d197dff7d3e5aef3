"""The settings of the benchmarks, and of the processes and servers that they start."""

from __future__ import annotations

import json
import os
from typing import Any

# Where the servers of this run are, from bench.py: redis, database, caches, ratelimits.
GIVEN: dict[str, Any] = json.loads(os.environ.get("BENCHMARKS", "{}"))
REDIS: str = GIVEN.get("redis", "redis://127.0.0.1:6379/0")

SECRET_KEY = "benchmarks"
ALLOWED_HOSTS = ["*"]
USE_TZ = True
ROOT_URLCONF = "benchmarks.urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "rest_framework",
    "ratelimits",
]
MIDDLEWARE = ["benchmarks.callers.known"]
DATABASES = {
    "default": GIVEN.get("database")
    or {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"},
}
# Those peers that get slower with what they keep have a database of their own, to be emptied.
CACHES: dict[str, dict[str, Any]] = GIVEN.get("caches") or {
    "default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": REDIS},
    "peers": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": REDIS[:-1] + "1"},
    "logs": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": REDIS[:-1] + "2"},
}
RATELIMITS: dict[str, Any] = {
    "PROTECT": ["/protected"],
    # No measurement may go on in memory unnoticed, or read again what it keeps.
    "STORE_TIMEOUT": 20,
    "STORE_FAILURE": "deny",
    "CATALOG_TTL": 3600,
    **GIVEN.get("ratelimits", {}),
}
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["benchmarks.callers.Known"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
}
# Refusals are no news here.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "loggers": {"django.request": {"level": "CRITICAL"}},
}

# django-ratelimit's, and django-smart-ratelimit's.
RATELIMIT_USE_CACHE = "peers"
RATELIMIT_BACKEND = "redis"
RATELIMIT_REDIS = {"url": REDIS[:-1] + "1"}
