"""What docs/operators.md says is so."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs/operators.md").read_text()


def test_links() -> None:
    anchors = {
        re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^#+ (.*)$", TEXT, re.MULTILINE)
    }
    for link in re.findall(r"\]\(([^)]*)\)", TEXT):
        path, _, anchor = link.partition("#")
        assert (ROOT / "docs" / path).is_file() if path else anchor in anchors, link
    assert "(docs/operators.md)" in (ROOT / "README.md").read_text()
