"""Tests of something else are not to be limited."""

from __future__ import annotations

from contextlib import ExitStack

from .blocks import Block, going_before


def off() -> Block[None]:
    """Nobody is limited, nothing is counted and nothing published.

    Whatever the settings say, also those that a test overrides, and whatever an operator has
    switched to. An override() within it has its limits enforced.
    """
    return Block(_begin)


def _begin(stack: ExitStack) -> None:
    stack.enter_context(going_before(MODE="off"))
