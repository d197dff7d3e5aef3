"""docs/neighbours.md, whose samples are run as they are shown."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

from tests.processes import ROOT

TEXT = (ROOT / "docs" / "neighbours.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def sample(*holding: str, **given: Any) -> dict[str, Any]:
    """What those blocks of the page define that hold these words, one after the other."""
    names: dict[str, Any] = {"__name__": "docs.neighbours", **given}
    for words in holding:
        (text,) = [text for text in BLOCKS if words in text]
        exec(compile(text, "docs/neighbours.md", "exec"), names)
    return names


def as_module(names: dict[str, Any], name: str = "docs.neighbours") -> ModuleType:
    """For settings that take a module, such as ROOT_URLCONF."""
    module = ModuleType(name)
    vars(module).update(names)
    return module
