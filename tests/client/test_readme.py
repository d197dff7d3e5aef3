from __future__ import annotations

import re
from pathlib import Path
from typing import Any

README = Path(__file__).parent.parent.parent / "README.md"


def test_what_readme_says_of_other_peoples_limits() -> None:
    _, _, text = README.read_text().partition("## Other people's limits")
    _, sample, _ = re.split(r"```(?:python)?\n", text, maxsplit=2)
    wait, quota = (line[2:] for line in sample.splitlines() if line.startswith("# "))
    names: dict[str, Any] = {}
    exec(sample, names)
    assert wait.startswith(f"{names['wait']}: seconds")
    assert quota == repr(names["quota"])
