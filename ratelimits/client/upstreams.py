"""Which terms other people's APIs have, read from the models and kept warm."""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple

from ratelimits.edits import is_anyone_editing, is_editing
from ratelimits.keeping import Kept, put, read
from ratelimits.keys import digest
from ratelimits.pacing.terms import Terms

from .rows import load_terms

# Slugs that a process keeps at once, also such as there are no rows of.
MOST = 1000
# Of which only the version was heard.
UNREAD = object()

_kept: dict[str, Kept] = {}
_lock = Lock()


class Known(NamedTuple):
    """The terms of an upstream, None if there is none, and the version they were read under."""

    terms: Terms | None
    version: str


def known(slug: str) -> Known:
    """What is known of an upstream, from the database if that is not fresh.

    If the database can't be read, what was known stays. Raises CatalogUnavailable if that is
    nothing.
    """
    kept = _kept.get(slug)
    editing = is_editing()
    if kept is None or not kept.fresh or editing:
        before = None if kept is None or kept.value is UNREAD else kept
        version = kept.version if kept else ""
        kept = read(lambda: load_terms(slug), before, version, for_others=not editing)
        if not editing:
            _keep(slug, kept)
    return Known(kept.value, kept.version)


def warm(slug: str) -> Known | None:
    """What is known of an upstream, if no database is needed to tell."""
    kept = _kept.get(slug)
    # Only the thread that edits sees its own edits.
    if kept is None or not kept.fresh or is_anyone_editing():
        return None
    return Known(kept.value, kept.version)


def version_key(slug: str) -> str:
    """Where the store keeps the version of an upstream's terms."""
    return digest("upstream", slug)


def forget(slug: str, version: str) -> None:
    """The terms were edited, and are of this version now: the next known() reads them."""
    with _lock:
        kept = _kept.get(slug)
        put(_kept, slug, Kept(kept.value if kept else UNREAD, version, 0.0), MOST)


def read_again(slug: str) -> None:
    """Nothing was heard, but the next known() is to be as the database has it."""
    kept = _kept.get(slug)
    if kept is not None:
        forget(slug, kept.version)


def forget_all() -> None:
    _kept.clear()


def _keep(slug: str, found: Kept) -> None:
    with _lock:
        kept = _kept.get(slug)
        # Or else somebody has told of a newer version while this one was read.
        if kept is None or kept.version == found.version:
            put(_kept, slug, found, MOST)
