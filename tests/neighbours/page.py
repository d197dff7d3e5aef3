"""docs/neighbours.md, whose samples are run as they are shown."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from tests.docs.pages import text_of
from tests.docs.samples import sample as shown

PAGE = "docs/neighbours.md"
TEXT = text_of(PAGE)


def sample(*holding: str, dots: str = "...", **given: Any) -> dict[str, Any]:
    """What those blocks of the page define that hold these words, one after the other.

    `dots` is what stands for the bodies that the page leaves out.
    """
    names: dict[str, Any] = {"__name__": "docs.neighbours", **given}
    for words in holding:
        text = shown(PAGE, words).replace(": ...", f": {dots}")
        exec(compile(text, PAGE, "exec"), names)
    return names


def as_module(names: dict[str, Any]) -> ModuleType:
    """For settings that take a module, such as ROOT_URLCONF."""
    module = ModuleType("docs.neighbours")
    vars(module).update(names)
    return module
