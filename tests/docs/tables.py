"""Tables of a page, and what is below its headings."""

from __future__ import annotations

import re

from tests.docs.pages import FENCED, text_of


def section(page: str, title: str, level: str = "##") -> str:
    """The text below a heading, up to the next one of its level."""
    text = f"\n{FENCED.sub('', text_of(page))}"
    return text.partition(f"\n{level} {title}\n")[2].partition(f"\n{level} ")[0]


def titles(page: str, level: str = "##") -> list[str]:
    return re.findall(rf"^{level} (.*)$", FENCED.sub("", text_of(page)), re.MULTILINE)


def rows(text: str) -> list[list[str]]:
    """The cells of tables, without their heads."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    heads = {number - 1 for number, line in enumerate(lines) if re.fullmatch(r"[|\s:-]+", line)}
    left = {number for head in heads for number in (head, head + 1)}
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for number, line in enumerate(lines)
        if number not in left
    ]


def named(text: str) -> set[str]:
    """What stands in backticks, without the arguments of what can be called."""
    return {name.partition("(")[0].lstrip("@") for name in re.findall(r"`([^`]+)`", text)}
