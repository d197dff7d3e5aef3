"""What the checks share."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from django.conf import settings

from ratelimits.conf import conf


def own_settings() -> Mapping[Any, Any] | None:
    """The project's RATELIMITS; None if it is not a dictionary and can't be read."""
    value = getattr(settings, "RATELIMITS", None)
    if value is None:
        return {}
    return value if isinstance(value, Mapping) else None


def is_on() -> bool:
    """Whether anything is counted at all, as far as one can tell."""
    return own_settings() is not None and conf.MODE != "off"


def is_production() -> bool:
    """Whether other people's requests may be served.

    `manage.py test` runs the checks too, with DEBUG off, and needs none of this.
    """
    return not settings.DEBUG and not is_test_run()


def is_test_run() -> bool:
    return sys.argv[1:2] == ["test"]


def is_plain_check() -> bool:
    """Whether `manage.py check` was called without saying what to check.

    Other commands run the checks too, and should not wait for a database.
    """
    chosen = ("-t", "--tag", "--database")
    return sys.argv[1:2] == ["check"] and not any(word.startswith(chosen) for word in sys.argv)


def meant(value: object, known: Iterable[str]) -> str | None:
    """The known word that comes closest."""
    words = {word.lower(): word for word in known}
    close = get_close_matches(value.lower(), words, n=1) if isinstance(value, str) else []
    return words[close[0]] if close else None


def quoted(words: Iterable[str]) -> str:
    """Words as one writes them in Python, in double quotes as everywhere in the messages."""
    # Settings may hold lazy ones.
    return ", ".join(json.dumps(str(word)) for word in words)


def shown(value: object) -> str:
    """A value in a message: as in Python, but not pages of it."""
    text = quoted([value]) if type(value) is str else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
