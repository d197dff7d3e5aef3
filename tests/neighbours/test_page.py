"""docs/neighbours.md holds together, and what it names is there."""

from __future__ import annotations

import re

from tests.checking import ids
from tests.neighbours.page import BLOCKS, TEXT, sample
from tests.processes import ROOT

README = (ROOT / "README.md").read_text()
WORD = re.compile(r'"([^"]+)"')
TITLES = re.findall(r"^#+ (.*)$", TEXT, re.MULTILINE)


def anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")


def test_each_block_is_tried() -> None:
    tried = "".join(path.read_text() for path in (ROOT / "tests" / "neighbours").rglob("*.py"))
    words = [word for call in re.findall(r"sample\(([^)]*)", tried) for word in WORD.findall(call)]
    for resolver in re.findall(r'as_shown\("(\w+)"', tried):
        words += [f"def {resolver}", f"project.tenants.{resolver}"]
    for text in BLOCKS:
        assert any(word in text for word in words), text


def test_cors_as_it_is_shown() -> None:
    shown = sample("CORS_EXPOSE_HEADERS")
    chain = shown["MIDDLEWARE"]
    assert ids(MIDDLEWARE=chain, CORS_EXPOSE_HEADERS=shown["CORS_EXPOSE_HEADERS"]) == []
    assert ids(MIDDLEWARE=[*reversed(chain)]) == ["W022", "W023"]


def test_links() -> None:
    anchors = {anchor(title) for title in TITLES}
    for link in re.findall(r"\]\(([^)]*)\)", TEXT):
        path, _, place = link.partition("#")
        assert (ROOT / "docs" / path).exists(), link
        assert path or place in anchors, link
    for place in re.findall(r"docs/neighbours\.md#([a-z0-9-]+)", README):
        assert place in anchors, place


def test_the_table_names_every_section() -> None:
    sections = re.findall(r"^## (.*)$", TEXT, re.MULTILINE)
    listed = re.findall(r"^\| \[[^]]*\]\(#([a-z0-9-]+)\)", TEXT, re.MULTILINE)
    assert listed == [anchor(title) for title in sections]


def test_the_readme_leads_here() -> None:
    assert "(docs/neighbours.md)" in README
