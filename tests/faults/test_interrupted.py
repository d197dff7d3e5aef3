"""A call that a signal ends anywhere: the next one is not given its reply."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from ratelimits.stores.base import Store
from tests.conformance.conftest import lent, really_connecting

__all__ = ["lent", "really_connecting"]

STORES = ["django-redis", "memcached", "postgresql", "sqlite"]
# Where there are many calls, or each takes long, some are tried.
STEPS = {"new": {"postgresql": 211, "sqlite": 13}, "kept": {"postgresql": 13}}


class Interrupt(BaseException):
    """Not an error: as KeyboardInterrupt, SystemExit, or a greenlet's end."""


def interrupt(at: int, call: Callable[[], object]) -> bool:
    """End a call where one of those within it returns: there Python hears of signals.

    False if it has less of them.
    """
    returned = 0

    def profile(frame: Any, event: str, arg: Any) -> None:
        nonlocal returned
        if event.endswith("return"):
            returned += 1
            if returned == at:
                raise Interrupt

    # What listens to the collector is not part of the call.
    gc.disable()
    sys.setprofile(profile)
    try:
        call()
    except Interrupt:
        return True
    finally:
        sys.setprofile(None)
        gc.enable()
    return False


def hang_up(store: Any) -> None:
    """The next call needs a new connection."""
    if hasattr(store, "client"):
        store.close()
    elif hasattr(store, "servers"):
        store.servers.close()
    else:
        store.own.close()


# What a client was about to make has an end that expects it whole.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", STORES)
@pytest.mark.parametrize("connection", STEPS)
def test_the_next_answer_is_its_own(
    name: str, connection: str, lent: Callable[[str], Store]
) -> None:
    store = lent(name)
    store.set_versions({"first": "1st", "second": "2nd"}, 600)
    at = 1
    with warnings.catch_warnings():
        # A connection that was not yet anybody's is closed when its memory is.
        warnings.simplefilter("ignore", ResourceWarning)
        while interrupt(at, lambda: store.versions(["first"])):
            assert store.versions(["second"]) == ("2nd",)
            if connection == "new":
                hang_up(store)
            at += STEPS[connection].get(name, 1)
        gc.collect()
    assert at > 20


def test_memcached_is_hung_up_on(lent: Callable[[str], Store]) -> None:
    """Its client would keep the connection, though not for anybody's use."""
    store: Any = lent("memcached")
    (client,) = store.servers.clients.values()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pymemcache.client.base._readline", end)
        with pytest.raises(Interrupt):
            store.versions(["first"])
    assert not client.client_pool.used
    assert not client.client_pool.free


def end(*args: object) -> None:
    raise Interrupt
