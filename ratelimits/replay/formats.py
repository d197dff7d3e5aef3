"""From a line of a log to the fields that a replay needs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

# As Apache calls it. What follows in a line does no harm.
COMMON = '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent'
# As nginx and Apache call it.
COMBINED = f'{COMMON} "$http_referer" "$http_user_agent"'
# Those that tell most come first.
TIMES = ("msec", "time_iso8601", "time_local")
JSON_TIMES = ("msec", "time_iso8601", "@timestamp", "timestamp", "time", "ts", "time_local")
PATHS = ("request_uri", "uri", "request")
JSON_PATHS = ("request_uri", "uri", "path", "url", "request")

_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_QUOTED = r'([^"\\]*(?:\\.[^"\\]*)*)'
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|(.))")


class Fields(NamedTuple):
    """What is read of a line, as it stands there; "" or None for what it lacks."""

    time: str | int | None
    tenant: str | int | None
    path: str | int | None
    cost: str | int | None


class Names(NamedTuple):
    """What the fields are called in the log. None: the first of the usual names that is there."""

    tenant: str = "remote_user"
    time: str | None = None
    path: str | None = None
    cost: str | None = None


Reader = Callable[[str], "Fields | None"]


def reader(log_format: str, names: Names) -> Reader:
    """A function that reads a line of this format, or of JSON; None for what is neither."""
    read_json = _json_reader(names)
    # A log of JSON may have fields that the format for text has not.
    read_text = _nothing if missing(log_format, names) else _text_reader(log_format, names)

    def read(line: str) -> Fields | None:
        return read_json(line) if line[:1] == "{" else read_text(line)

    return read


def usual(names: Names) -> str:
    """The format of a server that was not told of any: the shorter one, if it has all fields."""
    return COMBINED if missing(COMMON, names) else COMMON


def missing(log_format: str, names: Names) -> str | None:
    """A name of which the format has no variable; None if it has all that are asked for."""
    known = variables(log_format)
    return next((name for name in names if name and name not in known), None)


def _nothing(line: str) -> None:
    return None


def variables(log_format: str) -> list[str]:
    """The names of a format's variables."""
    return [match[1] or match[2] for match in _VARIABLE.finditer(log_format)]


def _text_reader(log_format: str, names: Names) -> Reader:
    known = variables(log_format)
    wanted = [
        _chosen(names.time, TIMES, known),
        names.tenant,
        _chosen(names.path, PATHS, known),
        names.cost,
    ]
    match = re.compile(_pattern(log_format, {name for name in wanted if name})).match
    captured = [name for name in dict.fromkeys(known) if name in wanted]
    places = [1 + captured.index(name) if name else 0 for name in wanted]

    def read(line: str) -> Fields | None:
        found = match(line)
        if found is None:
            return None
        return Fields(*[found[place] if place else None for place in places])

    return read


def _chosen(name: str | None, usual: Sequence[str], known: Sequence[str]) -> str | None:
    return name or next((each for each in usual if each in known), None)


def _pattern(log_format: str, wanted: set[str]) -> str:
    """A pattern that captures the variables that are wanted, each once."""
    pattern, end, seen = "", 0, set()
    for match in _VARIABLE.finditer(log_format):
        before, name = log_format[end : match.start()], match[1] or match[2]
        end = match.end()
        value = _value(name, before[-1:], log_format[end:])
        is_captured = name in wanted and name not in seen
        seen.add(name)
        pattern += re.escape(before) + (value if is_captured else value.replace("(", "(?:", 1))
    return pattern + re.escape(log_format[end:])


def _value(name: str, before: str, after: str) -> str:
    if before == '"' and after[:1] == '"':
        return _QUOTED
    if name == "remote_user":
        # The only one that may have spaces without quotes.
        return "(.*?)"
    return f"([^{re.escape(after[0])}]*)" if after else "(.*)"


def unescaped(text: str) -> str:
    r"""As it was before the server wrote `\x22` or `\"` for what would end a field."""
    if "\\" not in text:
        return text
    raw = _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else m[2], text)
    try:
        return raw.encode("latin-1").decode()
    except UnicodeError:
        return raw


def _json_reader(names: Names) -> Reader:
    get_time, get_path = _first(names.time, JSON_TIMES), _first(names.path, JSON_PATHS)
    get_tenant = _first(names.tenant, ())
    get_cost = _first(names.cost, ()) if names.cost else lambda found: None

    def read(line: str) -> Fields | None:
        try:
            # Floats stay text, which is exact.
            found = json.loads(line, parse_float=str)
        except (ValueError, RecursionError):
            return None
        if not isinstance(found, dict):
            return None
        said = (get_time(found), get_tenant(found), get_path(found), get_cost(found))
        return Fields(*map(_scalar, said))

    return read


def _scalar(value: Any) -> str | int | None:
    return value if type(value) in (str, int) else None


def _first(name: str | None, usual: Sequence[str]) -> Callable[[dict[str, Any]], Any]:
    """Gets a field by its name, or by its path with dots; without a name by the usual ones."""
    if name is None:
        return lambda found: next((found[each] for each in usual if each in found), None)
    *outer, last = name.split(".")

    def get(found: Any) -> Any:
        if name in found:
            return found[name]
        for step in outer:
            found = found.get(step)
            if not isinstance(found, dict):
                return None
        return found.get(last)

    return get
