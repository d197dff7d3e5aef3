"""Management commands as a script meets them."""

from __future__ import annotations

from io import StringIO
from typing import NamedTuple

from django.core.management import CommandError, call_command


class Ended(NamedTuple):
    """How a command ended; what it complains of at the end is in `err` too."""

    code: int
    out: str
    err: str


def run(*args: str) -> Ended:
    out, err = StringIO(), StringIO()
    try:
        call_command(*args, stdout=out, stderr=err, no_color=True)
    except CommandError as error:
        return Ended(error.returncode, out.getvalue(), f"{err.getvalue()}{error}")
    return Ended(0, out.getvalue(), err.getvalue())
