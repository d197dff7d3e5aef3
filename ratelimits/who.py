"""Who is counted for a request, or for a tenant's key."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from asgiref.sync import sync_to_async
from django.http import HttpRequest
from django.utils.functional import LazyObject, empty

from .addresses import address_of
from .bodies import keeping_body
from .catalog import Caller
from .conf import conf
from .requests import is_preflight, plain
from .tenants import atenant_of, by_user, is_async, is_exempt, resolvers, tenant_of

# A tenant's key, Django's request, or DRF's.
Who = Any


class Counted(NamedTuple):
    """A caller, and whether it is exempt: then nothing counts, unless it has own limits."""

    caller: Caller
    exempt: bool = False


def caller_of(who: Who) -> Counted:
    """The caller behind a key or a request. Raises ValueError for what is neither."""
    check_who(who)
    if isinstance(who, str):
        return _by_key(who)
    # DRF's request is slow to give what Django's has.
    request = plain(who)
    if is_preflight(request):
        return at_address(who)
    with keeping_body(request):
        return Counted(Caller(tenant_of(who), address_of(request)), is_exempt(who))


async def acaller_of(who: Who) -> Counted:
    """See caller_of(). Plain resolvers run in a thread, where they may read the database."""
    check_who(who)
    if isinstance(who, str):
        return _by_key(who)
    if is_preflight(who):
        return await aat_address(who)
    if resolvers() == (by_user,) and not conf.EXEMPT and _user_is_known(who):
        return caller_of(who)
    if not any(map(is_async, resolvers())):
        return await sync_to_async(caller_of, thread_sensitive=True)(who)
    with keeping_body(plain(who)):
        exempt = await sync_to_async(is_exempt, thread_sensitive=True)(who)
        return Counted(Caller(await atenant_of(who), address_of(who)), exempt)


@lru_cache(maxsize=4096)
def _by_key(key: str) -> Counted:
    return Counted(Caller(key))


def _user_is_known(request: Any) -> bool:
    """Whether a look at the user needs no database. DRF's request may authenticate for it."""
    if not isinstance(request, HttpRequest) or hasattr(type(request), "user"):
        return False
    user = vars(request).get("user")
    if isinstance(user, LazyObject):
        user = user._wrapped
    kind: Any = type(user)
    return user is None or (user is not empty and _tells_by_itself(kind))


@lru_cache(maxsize=64)
def _tells_by_itself(kind: type) -> bool:
    """Whether what makes a user a tenant is as Django has it: a project's may ask a database."""
    for name in ("is_authenticated", "pk"):
        owner = next((each for each in kind.__mro__ if name in vars(each)), None)
        if owner is None or not owner.__module__.startswith("django."):
            return False
    return True


def at_address(request: Any) -> Counted:
    """The caller as an address only, for what is counted before anyone is authenticated."""
    return Counted(Caller(None, address_of(request), only_address=True), _is_exempt_yet(request))


async def aat_address(request: Any) -> Counted:
    """See at_address()."""
    if not conf.EXEMPT:
        return at_address(request)
    return await sync_to_async(at_address, thread_sensitive=True)(request)


def check_who(who: object) -> None:
    """Raises ValueError unless it is a tenant's key or a request."""
    if isinstance(who, str):
        if not who:
            raise ValueError("A tenant's key can't be empty.")
    elif not hasattr(who, "META"):
        raise ValueError(f"A tenant's key is text, not {who!r}.")


def _is_exempt_yet(request: Any) -> bool:
    """What EXEMPT says; no, if it asks for a user before there is one."""
    try:
        with keeping_body(plain(request)):
            return is_exempt(request)
    except AttributeError:
        if hasattr(request, "user"):
            raise
        return False
