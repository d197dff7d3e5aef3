"""Names in the store: keyed digests, from which nothing can be read or guessed back."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from functools import cache
from hashlib import blake2b

from django.conf import settings
from django.core.signals import setting_changed
from django.utils.encoding import force_bytes

from .conf import conf


def digest(*parts: str) -> str:
    """16 characters that stand for the parts, as they are and in this order.

    Each part goes in with its length, so that no two lists of parts can run together.
    """
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    text = b"".join(b"%d:%b" % (len(part), part) for part in encoded)
    value = blake2b(text, key=secret_for(b"ratelimits.keys"), digest_size=12).digest()
    return urlsafe_b64encode(value).decode()


@cache
def secret_for(use: bytes) -> bytes:
    """32 bytes from the project's secret, other ones for each use. `use`: at most 16 bytes."""
    secret = conf.KEY_SECRET or settings.SECRET_KEY
    return blake2b(force_bytes(secret), person=use, digest_size=32).digest()


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting in ("RATELIMITS", "SECRET_KEY"):
        secret_for.cache_clear()


setting_changed.connect(_forget, dispatch_uid="ratelimits.keys")
