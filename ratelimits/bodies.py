"""Fields of a request's body, read such that the view can still read the body itself."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.http.request import RawPostDataException

# Most requests bring no form that Django would parse from a stream.
NOTHING = nullcontext()
# Characters. No name of an account is longer, and those of Unicode take their time.
MOST = 1000


def keeping_body(request: Any) -> AbstractContextManager[None]:
    """Meanwhile callables of the project's may look at a form, and the view still at the body."""
    if getattr(request, "content_type", "") != "multipart/form-data":
        return NOTHING
    is_kept = "_load_post_and_files" in vars(request)
    return NOTHING if is_kept or not _fits_in_memory(request) else _reading_first(request)


@contextmanager
def _reading_first(request: Any) -> Iterator[None]:
    parse = request._load_post_and_files

    def parse_what_was_read() -> None:
        _read(request)
        parse()

    request._load_post_and_files = parse_what_was_read
    try:
        yield
    finally:
        del request._load_post_and_files


def field_of(request: Any, name: str) -> str | None:
    """A field of a form or of a JSON object in the body, None if it is not there.

    As one value in all its spellings. A form that can't be parsed raises what it would raise in
    the view, to be answered with 400: Django tells it but once, and then gives an empty form.
    """
    # DRF's request has parsed data, to which the same applies.
    data = request.data if hasattr(request, "data") else _posted(request, name)
    value = data.get(name) if hasattr(data, "get") else None
    return _spelled(str(value)) if isinstance(value, str | int | float) else None


def _spelled(value: str) -> str:
    """One of all spellings that a login may take for the same account.

    Django's form does so for spaces around and for forms of Unicode, databases and email do for
    case: who guesses passwords must not have a bucket for each.
    """
    value = value.strip()
    if len(value) > MOST:
        return value
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", value).casefold())


def _posted(request: Any, name: str) -> Any:
    """A form that has the field, or JSON.

    Views that read JSON themselves may not ask what the client calls it.
    """
    kind = request.content_type or ""
    if kind == "application/json" or kind.endswith("+json"):
        return _json(request)
    if _fits_in_memory(request):
        _read(request)
    if name in request.POST:
        return request.POST
    # Unless it is a stream that is the view's to read.
    return _json(request) if hasattr(request, "_body") else None


def _read(request: Any) -> None:
    with suppress(RawPostDataException):
        # Django parses forms from a body that was read; the other way round is an error.
        request.body  # noqa: B018


def _json(request: Any) -> Any:
    """What the view will stumble over anyway is as if nothing had been posted."""
    try:
        return json.loads(request.body)
    except (ValueError, RecursionError, OSError, SuspiciousOperation, RawPostDataException):
        return None


def _fits_in_memory(request: Any) -> bool:
    """Whether a form is one that Django would read at once. Larger uploads are streamed."""
    length = request.META.get("CONTENT_LENGTH") or ""
    if hasattr(request, "_post") or not length.isdecimal():
        return False
    most: int | None = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    return int(length) > 0 and (most is None or int(length) <= most)
