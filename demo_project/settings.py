"""The demo's settings, for this machine only: from an empty checkout to a running API."""

from __future__ import annotations

import os
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent

# Everybody can read this key, which is one reason why the demo listens on localhost only.
SECRET_KEY = "only-for-the-demo-on-this-machine-and-never-for-anything-else"
DEBUG = True
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]"]
USE_TZ = True
ROOT_URLCONF = "demo_project.urls"
WSGI_APPLICATION = "demo_project.wsgi.application"
STATIC_URL = "/static/"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "ratelimits",
    "demo_project",
]
MIDDLEWARE = [
    "demo_project.middleware.WhoServed",
    "ratelimits.middleware.RateLimitMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
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
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("DEMO_DATABASE") or BASE_DIR / "demo.sqlite3",
        # Several workers write to one file: they wait for each other instead of failing.
        "OPTIONS": {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
        },
    },
}

# One worker can count in its own memory. Several share Redis or Valkey.
REDIS_URL = os.environ.get("REDIS_URL", "")
if REDIS_URL:
    CACHES = {"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": REDIS_URL}}
else:
    CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}

RATELIMITS = {
    "TENANT": ["demo_project.tenants.by_api_key"],
    # The plan also limits views of the API that have no limit of their own.
    "PROTECT": ["/api/"],
    # Longer than one would have it in production: a demo shares its machine with a browser, an
    # editor and more, and should not start to count locally because of one of them.
    "STORE_TIMEOUT": 1.0,
}
REST_FRAMEWORK = {
    "DEFAULT_THROTTLE_CLASSES": ["ratelimits.throttling.PlanRateThrottle"],
    # Callers are known by their key alone; someone logged in to the admin is nobody special.
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "ratelimits: the demo",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "POSTPROCESSING_HOOKS": ["ratelimits.contrib.spectacular.document_rate_limits"],
}
# A refusal is no news here, and the experiments have thousands of them.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "loggers": {"django.request": {"level": "ERROR"}},
}
