"""The address a request came from, as one can count by it."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Protocol

from .conf import conf
from .logs import once

# What stands for all callers whose address can't be told.
UNKNOWN = ""
# No address with its port and zone is longer. Longer texts are not worth remembering.
MOST = 100


class HasMeta(Protocol):
    """Django's request or DRF's."""

    @property
    def META(self) -> dict[str, str]: ...  # noqa: N802


def address_of(request: HasMeta) -> str:
    """The caller's address in the form that is counted by; UNKNOWN if there is none.

    X-Forwarded-For is believed as far as TRUSTED_PROXIES says, from the right. IPv6 counts
    by its prefix, an IPv4-mapped address as IPv4.
    """
    meta = request.META
    peer = meta.get("REMOTE_ADDR") or ""
    forwarded = meta.get("HTTP_X_FORWARDED_FOR")
    trusted = conf.TRUSTED_PROXIES
    if forwarded and trusted:
        chain = [entry.strip() for entry in forwarded.split(",")]
        peer = chain[-min(trusted, len(chain))]
    elif forwarded and (not peer or is_private(peer)):
        once.warning(
            "A proxy at a private address sends X-Forwarded-For, which is ignored, so that all "
            "of its clients count as one. Set RATELIMITS['TRUSTED_PROXIES'] to the number of "
            "proxies in front of this process."
        )
    address = normalised(peer if len(peer) <= MOST else UNKNOWN, conf.IPV6_PREFIX)
    if address == UNKNOWN:
        once.warning(
            "A request has no usable address (REMOTE_ADDR or X-Forwarded-For); all such "
            "requests share one bucket."
        )
    return address


def counted_as(text: str) -> str:
    """What an address that people write is counted by; UNKNOWN for what is none.

    Also for what this gives: `2001:db8:1:2::/64`.
    """
    address, slash, size = text.partition("/")
    if (slash and size != str(conf.IPV6_PREFIX)) or len(text) > MOST:
        return UNKNOWN
    return normalised(address, conf.IPV6_PREFIX)


@lru_cache(maxsize=8192)
def normalised(text: str, prefix: int) -> str:
    """`192.0.2.1`, or `2001:db8:1:2::/64` for IPv6; UNKNOWN for what is no address."""
    address = _parse(text)
    if address is None:
        return UNKNOWN
    if isinstance(address, IPv4Address) or prefix == 128:
        return str(address)
    return str(IPv6Network((int(address), prefix), strict=False))


def _parse(text: str) -> IPv4Address | IPv6Address | None:
    """An address, without port, brackets or zone."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return address if mapped is None else mapped


@lru_cache(maxsize=1024)
def is_private(text: str) -> bool:
    """Also for the addresses of carriers and clouds (RFC 6598), which count as neither."""
    address = _parse(text)
    return address is not None and not address.is_global
