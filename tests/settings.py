"""The settings of the tests, and of the processes that tests start (see processes.py)."""

from __future__ import annotations

import json
import os
from typing import Any

SECRET_KEY = "tests"
DEBUG = False
ALLOWED_HOSTS = ["*"]
USE_TZ = True
ROOT_URLCONF = "tests.urls"
STATIC_URL = "/static/"
# Not Django's default, so that the app is seen to choose the type of its own keys.
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "ratelimits",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
DATABASES: dict[str, dict[str, Any]] = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": ":memory:",
        # Nobody needs the tests' data after a power cut.
        "OPTIONS": {"timeout": 20, "init_command": "PRAGMA synchronous=OFF"},
    },
}
CACHES: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
}


def redis_caches(
    url: str, backend: str = "django_redis.cache.RedisCache", **options: Any
) -> dict[str, dict[str, Any]]:
    """CACHES for override_settings; Django's own is django.core.cache.backends.redis.RedisCache."""
    return {"default": {"BACKEND": backend, "LOCATION": url, "OPTIONS": options}}


def memcached_caches(address: str, **options: Any) -> dict[str, dict[str, Any]]:
    """CACHES for override_settings."""
    backend = "django.core.cache.backends.memcached.PyMemcacheCache"
    return {"default": {"BACKEND": backend, "LOCATION": address, "OPTIONS": options}}


def database_caches() -> dict[str, dict[str, Any]]:
    """CACHES for override_settings. The counts have a table of their own, whatever LOCATION is."""
    backend = "django.core.cache.backends.db.DatabaseCache"
    return {"default": {"BACKEND": backend, "LOCATION": "cache"}}


# What a test asked for on behalf of a process that it starts: {"CACHES": …, "RATELIMITS": …}.
globals().update(json.loads(os.environ.get("RATELIMITS_TEST_SETTINGS", "{}")))
