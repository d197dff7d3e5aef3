"""Who calls: the tenants of the demo, known by the key that they send."""

from __future__ import annotations

from hashlib import sha256

from ratelimits.tenants import api_key

# Fixed, so that they can be printed and pasted. Real ones are random, and stored as digests only.
KEYS = {
    "acme": "acme-demo-key",
    "bakery": "bakery-demo-key",
    "clinic": "clinic-demo-key",
    "anonymous": "anonymous-demo-key",
}
_TENANTS = {sha256(key.encode()).digest(): tenant for tenant, key in KEYS.items()}


def tenant_of_key(key: str) -> str | None:
    """The tenant that a key belongs to, None for one that was made up."""
    # By digest: how long a lookup takes tells nothing about the keys.
    return _TENANTS.get(sha256(key.encode("utf-8", "surrogatepass")).digest())


by_api_key = api_key("X-API-Key", tenant_of_key)
