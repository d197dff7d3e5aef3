"""docs/neighbours.md holds together, and what it names is there."""

from __future__ import annotations

import re

from tests.checking import ids
from tests.neighbours.page import TEXT, sample

TITLES = re.findall(r"^#+ (.*)$", TEXT, re.MULTILINE)


def anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")


def test_cors_as_it_is_shown() -> None:
    shown = sample("CORS_EXPOSE_HEADERS")
    chain = shown["MIDDLEWARE"]
    assert ids(MIDDLEWARE=chain, CORS_EXPOSE_HEADERS=shown["CORS_EXPOSE_HEADERS"]) == []
    assert ids(MIDDLEWARE=[*reversed(chain)]) == ["W022", "W023"]


def test_the_table_names_every_section() -> None:
    sections = re.findall(r"^## (.*)$", TEXT, re.MULTILINE)
    listed = re.findall(r"^\| \[[^]]*\]\(#([a-z0-9-]+)\)", TEXT, re.MULTILINE)
    assert listed == [anchor(title) for title in sections]
