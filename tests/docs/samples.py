"""Samples of code on the pages, and the only way for tests to get at them.

Whatever a test asks for here is taken for run by it: test_samples.py finds the calls, and each
sample that nobody asks for. So pages, and what they hold, are named by texts or by constants.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tests.docs.pages import text_of

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# What can be run, or read by who it is for. Other blocks show what is printed or sent.
CODE = {"console", "csv", "django", "json", "nginx", "python", "sh", "toml", "yaml"}
MODULE = re.compile(r"# shop/(\w+)\.py\n(.*)", re.DOTALL)


class Sample(NamedTuple):
    page: str
    line: int
    language: str
    text: str


def samples(page: str) -> list[Sample]:
    text = text_of(page)
    return [
        Sample(page, text.count("\n", 0, found.start()) + 1, found[1], found[2])
        for found in FENCE.finditer(text)
    ]


def sample(page: str, holding: str) -> str:
    """The one sample of a page that holds this text."""
    (found,) = [each for each in samples(page) if holding in each.text]
    return found.text


def modules(page: str) -> dict[str, str]:
    """Those that are modules of the package `shop`, as their first line says, by name."""
    found = [MODULE.fullmatch(each.text) for each in samples(page) if each.language == "python"]
    return {match[1]: match[2] for match in found if match}


def commands(page: str) -> list[str]:
    """What is typed into a shell, line by line."""
    typed = [each.text for each in samples(page) if each.language == "sh"]
    return [line for text in typed for line in text.splitlines()]


def steps(page: str, heading: str) -> list[Sample]:
    """Those below a heading, in their order: for who follows a page from its beginning."""
    text = text_of(page)
    start = text.count("\n", 0, text.index(f"\n## {heading}\n")) + 1
    end = start + text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0].count("\n")
    return [each for each in samples(page) if start < each.line <= end + 1]
