from __future__ import annotations

import pytest
from django.test import override_settings
from hypothesis import given, settings
from hypothesis import strategies as st

from ratelimits.sealing import PROOF, BrokenSeal, seal, unseal


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_read_back(text: bytes) -> None:
    sealed = seal(text, "names")
    assert len(sealed) == len(text) + PROOF
    assert unseal(sealed, "names") == text
    assert seal(text, "names") == sealed


def test_unreadable() -> None:
    text = b"sk_live_123" * 20
    sealed = seal(text, "names")
    assert b"sk_live" not in sealed
    # Nor does a repetition show, as it would with a short key stream.
    pieces = {sealed[n : n + 11] for n in range(PROOF, len(sealed), 11)}
    assert len(pieces) == 20


@settings(deadline=None)
@given(st.binary(max_size=100), st.data())
def test_a_single_changed_bit_is_noticed(text: bytes, data: st.DataObject) -> None:
    sealed = bytearray(seal(text, "names"))
    bit = data.draw(st.integers(0, 8 * len(sealed) - 1))
    sealed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(BrokenSeal):
        unseal(bytes(sealed), "names")


@pytest.mark.parametrize("sealed", [b"", b"x", b"x" * PROOF, b"x" * 100])
def test_what_was_never_sealed(sealed: bytes) -> None:
    with pytest.raises(BrokenSeal):
        unseal(sealed, "names")


def test_for_one_purpose_only() -> None:
    with pytest.raises(BrokenSeal):
        unseal(seal(b"text", "names"), "receipts")


@pytest.mark.parametrize(
    "others", [{"RATELIMITS": {"KEY_SECRET": "other"}}, {"SECRET_KEY": "other"}]
)
def test_with_one_secret_only(others: dict[str, object]) -> None:
    sealed = seal(b"text", "names")
    with override_settings(**others), pytest.raises(BrokenSeal):
        unseal(sealed, "names")
    assert unseal(sealed, "names") == b"text"


def test_other_texts_have_another_key_stream() -> None:
    one, other = (seal(text, "names")[PROOF:] for text in (b"\0" * 64, b"\0" * 63 + b"\1"))
    assert one != other
    assert sum(a != b for a, b in zip(one, other, strict=True)) > 40
