"""The pages that people read: the README, the changelog and docs/."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.processes import ROOT

FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def pages() -> list[str]:
    """Their paths in the repository."""
    found = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(ROOT.glob("docs/**/*.md"))]
    return [path.relative_to(ROOT).as_posix() for path in found]


def text_of(page: str) -> str:
    return (ROOT / page).read_text()


def links(page: str) -> Iterator[tuple[Path, str]]:
    """What a page links to and shows, in this repository: a file, and an anchor in it or ""."""
    for link in LINK.findall(FENCED.sub("", text_of(page))):
        path, _, anchor = link.partition("#")
        if "://" not in link:
            yield ((ROOT / page).parent / path if path else ROOT / page).resolve(), anchor


def anchors(page: Path) -> set[str]:
    """Those of its headings, as GitHub makes them and the builder of the pages too."""
    titles = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
