"""No test finds what another one has counted."""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from typing import Any

from ratelimits.conf import above
from ratelimits.hearing import hearing
from ratelimits.logs import once
from ratelimits.storms import storms
from ratelimits.usage.asking import away
from ratelimits.usage.recorder import recorder

from .blocks import Block, announce, going_before


def fresh_counts() -> Block[None]:
    """All buckets are full: with `with`, as a decorator, or in a fixture.

    Nothing is deleted. Names in the store are made with a secret of their own meanwhile, so
    that whatever else is in the cache stays, and tests that run at once do not meet.
    """
    return Block(begin)


def begin(stack: ExitStack) -> None:
    """What fresh_counts() does."""
    # What comes first here is done last at the end.
    stack.callback(forget_noted)
    stack.callback(announce)
    stack.enter_context(going_before(KEY_SECRET=secrets.token_hex()))
    announce()
    forget_noted()


def reset() -> None:
    """All buckets are full, and limits are read anew, from now on.

    Within a block that has counts of its own, until that ends. Nothing is deleted.
    """
    _renewed()["KEY_SECRET"] = secrets.token_hex()
    announce()
    forget_noted()


def _renewed() -> dict[str, Any]:
    """Where the secret in force is from; the settings' own one is not for us to change."""
    for values in above[::-1]:
        if "KEY_SECRET" in values:
            return values
    renewed: dict[str, Any] = {}
    above.insert(0, renewed)
    return renewed


def forget_noted() -> None:
    """What the process has noted of earlier requests, to act on it or to write it later."""
    recorder.drop()
    once.forget()
    storms.forget()
    hearing.forget()
    away.forget()
