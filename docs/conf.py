"""How the pages are built: sphinx-build -W --keep-going -c docs . OUTPUT, at the top of a checkout.

Markdown as it stands, with the README and the changelog among the pages, so that every link
between them is checked as it is on GitHub.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygments.lexers import TextLexer

if TYPE_CHECKING:
    from sphinx.application import Sphinx

TOP = Path(__file__).parent.parent
# What stands in the margin. Pages that nobody put here come last, by their names.
CONTENTS = {
    "Begin": [
        "What it is </README>",
        "/docs/tutorial",
        "/docs/how-to",
        "/docs/coming-from",
        "/docs/why",
    ],
    "Reference": [
        "/docs/reference/settings",
        "/docs/reference/models",
        "/docs/reference/api",
        "/docs/reference/answers",
        "/docs/reference/stores",
        "/docs/reference/checks",
        "/docs/commands",
    ],
    "Operating": ["/docs/operators", "/docs/operations", "/docs/metrics", "/docs/performance"],
    "Beside others": ["/docs/neighbours", "/docs/openapi", "/docs/testing"],
    "Other people's limits": ["/docs/client", "/docs/client-queues"],
    "More": ["/CHANGELOG"],
}

project = html_title = "ratelimits"
extensions = ["myst_parser"]
include_patterns = ["README.md", "CHANGELOG.md", "docs/**.md"]
# Neither what is installed nor what tools keep.
exclude_patterns = [".*"]
root_doc = "docs/index"
# As GitHub makes them.
myst_heading_anchors = 4
highlight_language = "text"
# It comes with the builder, and fetches nothing from elsewhere.
html_theme = "alabaster"
html_theme_options = {
    "description": "Rate limits for Django APIs that paying customers can rely on",
    # Also the least width of a window in which the contents stand beside the page: a length alone.
    "page_width": "72rem",
    "body_max_width": "60rem",
    "sidebar_width": "16rem",
}
html_sidebars = {"**": ["about.html", "searchfield.html", "navigation.html"]}
html_static_path = ["static"]
html_copy_source = False
html_use_index = False
html_show_sphinx = False
html_show_copyright = False


def contents() -> str:
    """The pages in their order, as the builder wants to be told."""
    listed = {page for pages in CONTENTS.values() for page in pages}
    found = [path.relative_to(TOP).with_suffix("") for path in TOP.glob("docs/**/*.md")]
    left = sorted({f"/{path.as_posix()}" for path in found} - listed - {f"/{root_doc}"})
    parts = {**CONTENTS, "More": [*CONTENTS["More"], *left]}
    return "".join(map(_part, parts, parts.values()))


def _part(caption: str, pages: list[str]) -> str:
    lines = "\n".join(pages)
    return f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{lines}\n```\n"


def add_contents(app: Sphinx, name: str, source: list[str]) -> None:
    """The page is read on GitHub as well, where a list for the builder would be in the way."""
    if name == root_doc:
        source[0] += contents()


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", add_contents)
    app.add_lexer("csv", TextLexer)
    return {"parallel_read_safe": True}
