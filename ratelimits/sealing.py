"""Names that must be read back: sealed, so that only those who have the secret can do so.

The construction is that of SIV (RFC 5297): a keyed digest of the text is both its proof and the
start of the key stream. The same text is sealed to the same bytes, so that sealed names can be
counted by; whoever must not see that two texts are the same puts something into them that differs.
The pseudo-random function is BLAKE2b with a key (RFC 7693), since the standard library has no
cipher.
"""

from __future__ import annotations

from functools import cache
from hashlib import blake2b
from hmac import compare_digest

from django.core.signals import setting_changed

from .keys import secret_for

PROOF = 16
BLOCK = 64


class BrokenSeal(ValueError):
    """Not sealed here, not with this secret or purpose, or changed since."""


def seal(text: bytes, purpose: str) -> bytes:
    """The text, unreadable, and 16 bytes longer. What is sealed for one purpose opens for no other.

    `purpose` is at most 16 bytes long.
    """
    proof = _proof(text, purpose)
    return proof + _mixed(text, proof, purpose)


def unseal(sealed: bytes, purpose: str) -> bytes:
    """The text that was sealed. Raises BrokenSeal."""
    proof = sealed[:PROOF]
    text = _mixed(sealed[PROOF:], proof, purpose)
    if not compare_digest(proof, _proof(text, purpose)):
        raise BrokenSeal("This was not sealed here, or it has been changed since.")
    return text


def _proof(text: bytes, purpose: str) -> bytes:
    return _digest(_begun("proof", purpose, PROOF), text)


def _mixed(text: bytes, proof: bytes, purpose: str) -> bytes:
    """The text XOR the key stream that belongs to a proof; twice is the text again."""
    begun = _begun("stream", purpose, BLOCK)
    size = len(text)
    blocks = range(-(-size // BLOCK))
    stream = b"".join([_digest(begun, proof + block.to_bytes(8, "big")) for block in blocks])
    mixed = int.from_bytes(text, "big") ^ int.from_bytes(stream[:size], "big")
    return mixed.to_bytes(size, "big")


def _digest(begun: blake2b, text: bytes) -> bytes:
    made = begun.copy()
    made.update(text)
    return made.digest()


# A copy of one that has its key already takes a third of the time.
@cache
def _begun(use: str, purpose: str, size: int) -> blake2b:
    key = secret_for(f"rl.seal.{use}".encode())
    return blake2b(key=key, person=purpose.encode(), digest_size=size)


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting in ("RATELIMITS", "SECRET_KEY"):
        _begun.cache_clear()


setting_changed.connect(_forget, dispatch_uid="ratelimits.sealing")
