"""Sealed bytes as a URI, which RFC 9457 wants `instance` to be: one that is absolute, and unique.

It is the URN of a UUID of version 8 (RFC 9562) and its q-component (RFC 8141), so that all that
compares URNs compares the UUID alone. The UUID is the proof of the seal, but for the six bits that
tell which kind of UUID it is; what they were is the last byte of the rest.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence

from ratelimits.sealing import PROOF

_UUID = "urn:uuid:([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
_BEGUN = re.compile(_UUID, re.I)
_WHOLE = re.compile(_UUID + r"\?=([A-Za-z0-9_-]+)", re.I)
# Where mails break lines, and quote them.
_BREAKS = re.compile(r"=?\r?\n[>|\s]*|[\s\u200b\ufeff]+")
# What stands for the marks of a URN in JSON, HTML, URLs and mails.
_MARKS = {
    ":": re.compile(r"&#x3a;|&#58;|%3a", re.I),
    "?": re.compile(r"\\u003f|&#x3f;|&#63;|%3f", re.I),
    "=": re.compile(r"\\u003d|&#x3d;|&#61;|%3d|=3d", re.I),
}


def urn_of(sealed: bytes) -> str:
    kind, variant = sealed[6], sealed[8]
    rest = sealed[PROOF:] + bytes(((kind & 0xF0) | (variant >> 6),))
    proof = bytearray(sealed[:PROOF])
    proof[6], proof[8] = (kind & 0x0F) | 0x80, (variant & 0x3F) | 0x80
    text = proof.hex()
    uuid = f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
    return f"urn:uuid:{uuid}?={urlsafe_b64encode(rest).decode().rstrip('=')}"


def found_in(pasted: str) -> Sequence[bytes]:
    """Whatever may be a receipt in a text; also one that a mail has broken into lines."""
    plain = pasted
    for mark, escaped in _MARKS.items():
        plain = escaped.sub(mark, plain)
    # As it is first: to undo what was not done would harm it.
    texts = pasted, _BREAKS.sub("", pasted), plain, _BREAKS.sub("", plain)
    pairs = dict.fromkeys(pair for text in texts for pair in _WHOLE.findall(text))
    return [_sealed(*pair) for pair in pairs]


def is_begun_in(pasted: str) -> bool:
    """Whether a text has a URN without the rest."""
    return _BEGUN.search(pasted) is not None


def _sealed(uuid: str, rest: str) -> bytes:
    """The bytes of a URN; none if it was never written like this."""
    body = urlsafe_b64decode(rest + "=" * (-len(rest) % 4)) if len(rest) % 4 != 1 else b""
    if not body:
        return b""
    proof, bits = bytearray.fromhex(uuid.replace("-", "")), body[-1]
    proof[6] = (proof[6] & 0x0F) | (bits & 0xF0)
    proof[8] = (proof[8] & 0x3F) | (bits & 0x03) << 6
    sealed = bytes(proof) + body[:-1]
    return sealed if urn_of(sealed) == f"urn:uuid:{uuid.lower()}?={rest}" else b""
