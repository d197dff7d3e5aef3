"""A language in which every translated text stands in brackets, so that the others are seen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from typing import Any
from unittest import mock

from django.utils import formats, translation

from ratelimits import describing
from tests.admin_pages import CLOSE, OPEN

BEGIN, END = "⟦", "⟧"
# Attributes that people see or hear.
SPOKEN = ("alt", "aria-label", "aria-description", "placeholder", "title")
# What people type is theirs.
SILENT = ("script", "style", "textarea")
WORD = re.compile(r"[^\W\d_]{2,}")


def marked(text: str) -> str:
    return f"{BEGIN}{text}{END}" if text.strip() else text


@contextmanager
def pseudo() -> Iterator[None]:
    """Meanwhile everything that is translated is marked, with whatever is put into it."""
    changes: dict[str, Any] = {
        "gettext": marked,
        "ngettext": lambda one, many, number: marked(one if number == 1 else many),
        "pgettext": lambda context, text: marked(text),
        "npgettext": lambda context, one, many, number: marked(one if number == 1 else many),
    }
    describing._describe.cache_clear()
    formats.reset_format_cache()
    with mock.patch.multiple(translation._trans, create=True, **changes):  # type: ignore[attr-defined]
        yield
    describing._describe.cache_clear()
    formats.reset_format_cache()


def unmarked(text: str) -> list[str]:
    """The words of a text that stand in no brackets, neither translated nor typed by anybody."""
    found, depth = [], 0
    for part in re.split(f"([{BEGIN}{END}{OPEN}{CLOSE}])", text):
        if part in (BEGIN, OPEN):
            depth += 1
        elif part in (END, CLOSE):
            depth -= 1
        elif depth <= 0:
            found += WORD.findall(part)
    return found


class _Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.spoken: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent += tag in SILENT
        self.spoken += [value for name, value in attrs if name in SPOKEN and value]
        pushed = dict(attrs)
        if tag == "input" and pushed.get("type") in ("submit", "button", "reset"):
            self.spoken.append(pushed.get("value") or "")

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag in SILENT

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.texts.append(data)


def unmarked_in_page(html: str) -> list[str]:
    """The words of a page that nobody translated."""
    parser = _Texts()
    parser.feed(html)
    # A sentence may go through several elements.
    return unmarked(" ".join(parser.texts)) + [w for text in parser.spoken for w in unmarked(text)]
