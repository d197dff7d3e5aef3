"""System checks."""

from __future__ import annotations


def register_all() -> None:
    """Called once, when the apps are ready."""
