"""The lines of logs: files, compressed ones, the standard input."""

from __future__ import annotations

import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import IO, Any, cast

GZIP = b"\x1f\x8b"
# Lines between two looks at how far it is.
STEP = 4096

Told = Callable[[int], None]


def sizes(names: Iterable[str]) -> list[int | None]:
    """The bytes of each file; None if it does not tell. Raises OSError if one can't be read."""
    return [None if name == "-" else _size(name) for name in names]


def _size(name: str) -> int | None:
    found = os.stat(name)
    # A pipe must be opened once only, since its writer may go on with nobody reading.
    if not stat.S_ISREG(found.st_mode):
        return None
    # So that one that can't be read is told of before others have been.
    open(name, "rb").close()
    return found.st_size


def lines_of(name: str, tell: Told) -> Iterator[str]:
    """The lines of a file; every few thousand it tells how many bytes of it were read.

    What a compressed file lacks at its end is one line, which nobody can read.
    """
    with _opened(name) as raw:
        plain = io.BufferedReader(cast(Any, raw), 1 << 20)
        is_packed = plain.peek(2)[:2] == GZIP
        packed = gzip.GzipFile(fileobj=plain) if is_packed else plain
        text = io.TextIOWrapper(cast(Any, packed), "utf-8", "replace", newline="\n")
        try:
            for number, line in enumerate(text, 1):
                if number % STEP == 0:
                    tell(_at(raw))
                yield line
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            yield f"{name}: {error}"
        tell(_at(raw))
        # It would close the standard input too.
        text.detach()


def _opened(name: str) -> AbstractContextManager[IO[bytes]]:
    return nullcontext(sys.stdin.buffer) if name == "-" else open(name, "rb", buffering=0)


def _at(raw: IO[bytes]) -> int:
    try:
        return raw.tell()
    except OSError:
        return 0
