"""Whatever pages link to is there, also without the builder that CI asks."""

from __future__ import annotations

import pytest

from tests.docs.pages import anchors, links, pages
from tests.processes import ROOT


@pytest.mark.parametrize("page", pages())
def test_what_is_linked_exists(page: str) -> None:
    for target, anchor in links(page):
        assert target.exists(), f"{page} links to {target}"
        assert target.is_relative_to(ROOT)
        if anchor:
            assert anchor in anchors(target), f"{page} links to {target}#{anchor}"


@pytest.mark.parametrize("start", ["README.md", "docs/index.md"])
def test_every_page_is_found_from(start: str) -> None:
    found, new = set[str](), {start}
    while new:
        found |= new
        targets = {target for page in new for target, _ in links(page)}
        names = {target.relative_to(ROOT).as_posix() for target in targets}
        new = {name for name in names if name.endswith(".md")} - found
    assert found >= set(pages())
