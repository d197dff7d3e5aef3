"""What of an answer is worth showing to an operator."""

from __future__ import annotations

import re
from collections.abc import Mapping

# None of these fields ever holds a secret.
SHOWN = re.compile(r"(?:^|-)(?:rate-?limits?|retry-after|call-limit)(?:-|$)|^retry-after")


def seen_of(fields: Mapping[str, str]) -> str:
    """The fields about limits, one a line; empty if there are none. Names are in lower case."""
    lines = [f"{name}: {value}" for name, value in fields.items() if SHOWN.search(name)]
    return "\n".join(lines)
