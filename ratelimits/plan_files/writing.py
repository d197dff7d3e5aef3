"""From the database to a file, so that two databases with the same plans give the same text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from django.utils.translation import gettext

from .kinds import KINDS, Field, Item, Kind, stored

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def text_of(alias: str) -> str:
    """All plans, service limits and what else a file can say, as TOML.

    What is as it would be without being said is left out.
    """
    items = stored(alias).values()
    lines = [f"# {gettext('manage.py ratelimits_apply takes this file back.')}"]
    for kind in KINDS:
        mine = [item for item in items if item.path[0] == kind.section]
        lines += ["", *_section(kind, mine)]
    return "\n".join(lines) + "\n"


def _section(kind: Kind, items: list[Item]) -> Iterator[str]:
    """Named even if there is nothing in it, which then is what the file says."""
    yield f"[{_name(kind.section)}]"
    for item in items:
        yield ""
        yield f"[{'.'.join(map(_name, item.path))}]"
        for name, field in item.kind.fields.items():
            value = item.value(name)
            if value is not None and value != field.get_default():
                yield f"{_name(name)} = {_value(field, value)}"


def _name(text: str) -> str:
    return text if _BARE.fullmatch(text) else _quoted(text)


def _value(field: Field, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else _quoted(str(value))


def _quoted(text: str) -> str:
    """As TOML's basic strings, which are JSON's but for one character that has to be escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
