"""Who is counted for a request, or for a tenant's key."""

from __future__ import annotations

from typing import Any, NamedTuple

from asgiref.sync import sync_to_async

from .addresses import address_of
from .catalog import Caller
from .conf import conf
from .requests import is_preflight, plain
from .tenants import atenant_of, is_async, is_exempt, resolvers, tenant_of

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
        return Counted(Caller(who))
    # DRF's request is slow to give what Django's has.
    request = plain(who)
    if is_preflight(request):
        return at_address(who)
    return Counted(Caller(tenant_of(who), address_of(request)), is_exempt(who))


async def acaller_of(who: Who) -> Counted:
    """See caller_of(). Plain resolvers run in a thread, where they may read the database."""
    check_who(who)
    if isinstance(who, str):
        return Counted(Caller(who))
    if is_preflight(who):
        return await aat_address(who)
    if not any(map(is_async, resolvers())):
        return await sync_to_async(caller_of, thread_sensitive=True)(who)
    exempt = await sync_to_async(is_exempt, thread_sensitive=True)(who)
    return Counted(Caller(await atenant_of(who), address_of(who)), exempt)


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
        return is_exempt(request)
    except AttributeError:
        if hasattr(request, "user"):
            raise
        return False
