"""A project with one schema for each customer. Its database is in the environment."""

from __future__ import annotations

import json
import os

from tests.settings import TEMPLATES, USE_TZ

__all__ = ["TEMPLATES", "USE_TZ"]

SECRET_KEY = "tests"
ALLOWED_HOSTS = ["*"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

SHARED_APPS = [
    "django_tenants",
    "tests.neighbours.schemas",
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.admin",
    "ratelimits",
]
TENANT_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.admin",
]
INSTALLED_APPS = SHARED_APPS
TENANT_MODEL = "schemas.Customer"
TENANT_DOMAIN_MODEL = "schemas.Domain"
MIDDLEWARE = [
    "django_tenants.middleware.main.TenantMainMiddleware",
    "ratelimits.middleware.RateLimitMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
DATABASE_ROUTERS = ["django_tenants.routers.TenantSyncRouter"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ROOT_URLCONF = "tests.neighbours.schemas.urls"
PUBLIC_SCHEMA_URLCONF = "tests.neighbours.schemas.public_urls"
STATIC_URL = "/static/"
CACHES = {"default": {"BACKEND": "django.core.cache.backends.db.DatabaseCache", "LOCATION": "x"}}
globals().update(json.loads(os.environ.get("RATELIMITS_TEST_SETTINGS", "{}")))
