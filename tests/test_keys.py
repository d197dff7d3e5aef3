from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Any

import pytest
from django.test import override_settings
from hypothesis import given, settings
from hypothesis import strategies as st

from ratelimits.keys import digest
from tests.processes import ROOT

# Also what no encoding has, such as one half of a pair of surrogates.
parts = st.lists(st.text(alphabet=st.characters(exclude_categories=()), max_size=20), max_size=5)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a:b", "c"), ("a", "b:c")),
        (("tenant", "1", "user", "21"), ("tenant", "12", "user", "1")),
        (("ip", "10"), ("user", "10")),
        (("ip", "10"), ("tenant", "10")),
        (("user", "10"), ("tenant", "10")),
        (("ab",), ("a", "b")),
        (("", "a"), ("a", "")),
        (("a", ""), ("a",)),
        ((), ("",)),
        (("1:a",), ("1", "a")),
        (("a2:bc",), ("a", "bc")),
        (("a\0b",), ("a", "b")),
        (("é",), ("e\u0301",)),
        (("a",), ("A",)),
        (("\udc80",), ("?",)),
        (("\udc80",), ("\udc81",)),
    ],
)
def test_parts_do_not_run_together(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    """Case 8."""
    assert digest(*one) != digest(*other)


@settings(deadline=None)
@given(parts, parts)
def test_no_two_lists_of_parts_have_one_digest(one: list[str], other: list[str]) -> None:
    assert (digest(*one) == digest(*other)) is (one == other)


@settings(deadline=None)
@given(parts.filter(bool), st.data())
def test_the_same_characters_in_other_parts_have_another_digest(
    whole: list[str], data: Any
) -> None:
    """Lists that differ only in where one part ends, which random ones hardly do."""
    text = "".join(whole)
    cut = data.draw(st.integers(0, len(text)))
    other = [text[:cut], text[cut:]]
    assert (digest(*whole) == digest(*other)) is (whole == other)


@settings(deadline=None)
@given(parts)
def test_form(whole: list[str]) -> None:
    """Short, without any character that a store or a pattern of keys might take for its own."""
    assert re.fullmatch(r"[A-Za-z0-9_-]{16}", digest(*whole))


@pytest.mark.parametrize(
    "text", ["\udc80", "\ud800x", "\0", "🔑" * 1000, "x" * 100_000, " ", "\r\n"]
)
def test_any_characters_and_any_length(text: str) -> None:
    assert len(digest("tenant", text)) == 16
    assert digest("tenant", text) != digest("tenant", text + "x")


def test_nothing_can_be_read() -> None:
    """Case 9."""
    assert "sk_live_123" not in digest("tenant", "sk_live_123")


@pytest.mark.parametrize("own", [{"KEY_SECRET": "one"}, {"KEY_SECRET": b"two"}])
def test_nothing_can_be_guessed_without_the_secret(own: dict[str, Any]) -> None:
    """A list of all addresses and their digests is of no use elsewhere."""
    before = digest("address", "192.0.2.1")
    with override_settings(RATELIMITS=own):
        assert digest("address", "192.0.2.1") != before
    assert digest("address", "192.0.2.1") == before


def test_the_secret_is_derived_from_secret_key() -> None:
    before = digest("a")
    with override_settings(SECRET_KEY="another"):
        assert digest("a") != before
    with override_settings(RATELIMITS={"KEY_SECRET": None}):
        assert digest("a") == before


def test_an_own_secret_survives_a_new_secret_key() -> None:
    """So that a rotation of SECRET_KEY does not empty all buckets."""
    with override_settings(RATELIMITS={"KEY_SECRET": "own"}):
        before = digest("a")
        with override_settings(SECRET_KEY="another"):
            assert digest("a") == before


@pytest.mark.parametrize("secret", ["x" * 5000, "schlüssel", b"\x00\xff"])
def test_any_secret(secret: Any) -> None:
    with override_settings(RATELIMITS={"KEY_SECRET": secret}):
        assert len(digest("a")) == 16


def test_all_processes_agree() -> None:
    code = "import django; django.setup(); from ratelimits.keys import digest; print(digest('a'))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "PYTHONHASHSEED": "7",
        },
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.strip() == digest("a")
