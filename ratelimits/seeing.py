"""How a request is seen: its address, and what of X-Forwarded-For is believed; who it is.

For people who set up proxies and resolvers, and look. Nothing is taken, and nothing raised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from .addresses import UNKNOWN, address_of, is_private
from .catalog import Caller
from .conf import conf
from .tenants import is_exempt, tenant_of

# Entries of the header that are shown, from the right, and how much of each.
ENTRIES = 10
LENGTH = 64

# Written by the caller or anybody on the way; by a proxy that is trusted; and what counts.
Role = Literal["claimed", "proxy", "believed"]
# Without the header; not believed at all; not believed from a proxy that is probably one's own;
# believed; and with fewer entries than there should be proxies.
Forwarded = Literal["absent", "ignored", "unset", "believed", "short"]


class Hop(NamedTuple):
    """One address on the way of a request."""

    text: str
    role: Role


@dataclass(frozen=True)
class Seen:
    """`hops` are in the order of the way, the last one is the peer (REMOTE_ADDR).

    `left_out` are entries before them. `address` is what is counted by, "" if it is unusable.
    `failed` names the kinds of errors of the project's TENANT and EXEMPT.
    """

    hops: tuple[Hop, ...]
    left_out: int
    forwarded: Forwarded
    trusted: int
    address: str
    tenant: str | None
    exempt: bool
    failed: tuple[str, ...]

    @property
    def caller(self) -> Caller:
        return Caller(self.tenant, self.address)


def seen(request: Any) -> Seen:
    """How this very request is seen."""
    peer = request.META.get("REMOTE_ADDR") or ""
    chain = _chain(request.META.get("HTTP_X_FORWARDED_FOR") or "")
    trusted = int(conf.TRUSTED_PROXIES)
    forwarded = _forwarded(chain, trusted, peer)
    failed: list[str] = []
    tenant = _asked("TENANT", lambda: tenant_of(request), failed)
    return Seen(
        hops=_hops(chain, trusted, peer),
        left_out=max(0, len(chain) - ENTRIES),
        forwarded=forwarded,
        trusted=trusted,
        address=address_of(request) or UNKNOWN,
        tenant=tenant,
        exempt=bool(_asked("EXEMPT", lambda: is_exempt(request), failed)),
        failed=tuple(failed),
    )


def _chain(header: str) -> list[str]:
    return [entry.strip() for entry in header.split(",")] if header else []


def _forwarded(chain: list[str], trusted: int, peer: str) -> Forwarded:
    if not chain:
        return "absent"
    if not trusted:
        return "unset" if not peer or is_private(peer) else "ignored"
    return "believed" if len(chain) >= trusted else "short"


def _hops(chain: list[str], trusted: int, peer: str) -> tuple[Hop, ...]:
    believed = len(chain) - min(trusted, len(chain))
    hops = [Hop(text, _role(at, believed)) for at, text in enumerate([*chain, peer])]
    return tuple(Hop(hop.text[:LENGTH], hop.role) for hop in hops[-ENTRIES - 1 :])


def _role(at: int, believed: int) -> Role:
    if at == believed:
        return "believed"
    return "claimed" if at < believed else "proxy"


def _asked(setting: str, ask: Callable[[], Any], failed: list[str]) -> Any:
    """What a callable of the project says. Of its errors the kind: a text may hold a secret."""
    try:
        return ask()
    except Exception as error:
        failed.append(f"{setting}: {type(error).__name__}")
        return None
