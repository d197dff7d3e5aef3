"""What the tests of the system checks share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, run_checks
from django.test import override_settings

from tests.settings import MIDDLEWARE, redis_caches

OURS = "ratelimits.middleware.RateLimitMiddleware"
# Nothing is asked of the server.
REDIS = redis_caches("redis://127.0.0.1:6379/0")


def messages(
    *, deploy: bool = False, databases: Sequence[str] = (), **settings: Any
) -> list[CheckMessage]:
    """What our checks say of a good project with other settings."""
    good = {"CACHES": REDIS, "RATELIMITS": {}, "MIDDLEWARE": [OURS, *MIDDLEWARE], "DEBUG": False}
    with override_settings(**{**good, **settings}):
        return run_checks(
            tags=["ratelimits"], include_deployment_checks=deploy, databases=databases
        )


def ids(**settings: Any) -> list[str]:
    """The ids of the messages, without the name that all have in front."""
    found = [str(message.id) for message in messages(**settings)]
    assert all(name.startswith("ratelimits.") for name in found)
    return sorted(name.removeprefix("ratelimits.") for name in found)


def only(**settings: Any) -> CheckMessage:
    """The one message."""
    (message,) = messages(**settings)
    return message
