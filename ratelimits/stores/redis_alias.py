"""How a cache alias reaches Redis, read from its client without asking any server."""

from __future__ import annotations

from typing import Any


def pool_of(backend: Any) -> Any:
    """The pool of the client behind django-redis's backend, or Django's own."""
    if hasattr(backend, "client"):
        return backend.client.get_client(write=True).connection_pool
    return backend._cache.get_client(None, write=True).connection_pool
