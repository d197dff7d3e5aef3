"""Packages that only some need, and what installs them."""

from __future__ import annotations


def lacking(error: ModuleNotFoundError, extra: str) -> ModuleNotFoundError:
    """The same error, which says how to go on."""
    told = f"{error.msg}. It comes with: pip install 'django-ratelimits[{extra}]'"
    return ModuleNotFoundError(told, name=error.name, path=error.path)
