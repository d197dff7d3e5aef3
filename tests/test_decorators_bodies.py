"""Limits by a field of the body, which the view still has to read."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.test import Client
from django.urls import path
from rest_framework.decorators import api_view
from rest_framework.response import Response

from ratelimits.decorators import ratelimit
from ratelimits.testing import fresh_counts
from tests.doors import left, request
from tests.views import KINDS, SERVERS, AnyClient, function, hello

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]
urlpatterns: list[Any] = []


def serve(view: Any) -> None:
    urlpatterns[:] = [path("view", view)]


def passes(view: Any, **options: Any) -> bool:
    response = view(request(**options))
    assert response.status_code in (200, 429)
    return bool(response.status_code == 200)


def posts(view: Any, body: str | bytes, kind: str = "application/json", **options: Any) -> bool:
    return passes(view, method="post", data=body, content_type=kind, **options)


@pytest.mark.parametrize(
    "kind", ["application/json", "application/vnd.api+json", "application/json; charset=utf-8"]
)
def test_fields_of_json(kind: str) -> None:
    """Case 12: bob, alice, bob."""
    view = ratelimit("1/d", by="field:username")(hello)

    def posted(name: Any, address: str = "192.0.2.1") -> bool:
        return posts(view, json.dumps({"username": name}), kind, REMOTE_ADDR=address)

    assert [posted(name) for name in ("bob", "alice", "bob")] == [True, True, False]
    assert posted(7)
    assert not posted(7, "192.0.2.9")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[1]",
        b'"bob"',
        b"null",
        b"{}",
        b'{"username": null}',
        b'{"username": ""}',
        b'{"username": ["bob"]}',
        b'{"username": {"a": 1}}',
        b"[" * 100_000,
    ],
)
def test_json_without_the_field(body: bytes) -> None:
    """Case 12: counted by address, never an error of ours."""
    view = ratelimit("1/d", by="field:username")(hello)
    for address in ("192.0.2.1", "192.0.2.2"):
        assert posts(view, body, REMOTE_ADDR=address)
        assert not posts(view, body, REMOTE_ADDR=address)


@pytest.mark.parametrize(
    "spelling", ["ada", " ada", "ada\t\n", "ada\u3000", "ADA", "\uff21da", "\u24d0\u24d3\u24d0"]
)
def test_spellings_that_a_login_form_takes_for_one(spelling: str) -> None:
    """Whoever guesses at one account has one bucket for it."""
    view = ratelimit("1/d", by="field:username")(hello)
    for body, kind in (
        (json.dumps({"username": spelling}), "application/json"),
        (urlencode({"username": spelling}), "application/x-www-form-urlencoded"),
    ):
        with fresh_counts():
            assert posts(view, json.dumps({"username": "Ada"}))
            assert not posts(view, body, kind, REMOTE_ADDR="192.0.2.9")


@pytest.mark.parametrize("other", ["ada.", "a da", "ad\u00e4", "x" * 5000, "\ud800", "\0"])
def test_spellings_that_are_others(other: str) -> None:
    view = ratelimit("1/d", by="field:username")(hello)
    assert posts(view, json.dumps({"username": "ada"}))
    assert posts(view, json.dumps({"username": other}))
    assert not posts(view, json.dumps({"username": other}), REMOTE_ADDR="192.0.2.9")


@pytest.mark.parametrize(
    "kind", ["", "text/plain", "application/x-www-form-urlencoded", "application/octet-stream"]
)
def test_json_that_the_client_calls_otherwise(kind: str) -> None:
    """As curl does, and as whoever guesses does where the view does not ask."""
    view = ratelimit("1/d", by="field:username")(hello)
    body = json.dumps({"username": "bob"})
    assert posts(view, body, kind)
    assert not posts(view, body, kind, REMOTE_ADDR="192.0.2.9")
    assert not posts(view, body, REMOTE_ADDR="192.0.2.9")


def test_a_form_is_what_the_view_sees_of_it() -> None:
    """Whatever else its body could be read as."""
    view = ratelimit("1/d", by="field:username")(hello)
    kind = "application/x-www-form-urlencoded"
    assert posts(view, '{"username": "bob", "x": "&username=ada&"}', kind)
    assert posts(view, "username=bob", kind)
    assert not posts(view, "username=ada", kind)


def reading(request: HttpRequest) -> HttpResponse:
    """A view that reads the body in the way that it is told to."""
    if request.GET["how"] == "body":
        return HttpResponse(request.body)
    if request.GET["how"] == "stream":
        return HttpResponse(request.read())
    uploaded: Any = request.FILES
    files = {name: file.read().decode() for name, file in uploaded.items()}
    return JsonResponse({**request.POST.dict(), **files})


def multipart() -> dict[str, Any]:
    return {"username": "bob", "file": SimpleUploadedFile("a.txt", b"content")}


@KINDS
@SERVERS
@pytest.mark.parametrize("how", ["body", "stream", "POST"])
@pytest.mark.parametrize("kind", ["json", "form", "multipart"])
async def test_the_view_still_reads_the_body(
    how: str, kind: str, is_async: bool, caller: AnyClient
) -> None:
    """Cases 12 and 69: no RawPostDataException, and the whole body."""
    view = ratelimit("1/d", by="field:username")(function(reading, is_async))
    serve(view)
    arguments: dict[str, tuple[Any, ...]] = {
        "json": ('{"username": "bob"}', "application/json"),
        "form": ("username=bob", "application/x-www-form-urlencoded"),
        "multipart": (multipart(),),
    }
    response = await caller.post(f"/view?how={how}", *arguments[kind])
    assert response.status_code == 200
    if how == "POST":
        expected = {"json": {}, "form": {"username": "bob"}}
        whole = {"username": "bob", "file": "content"}
        assert response.json() == expected.get(kind, whole)
    else:
        assert b"bob" in response.content
    denied = await caller.post(f"/view?how={how}", *arguments[kind], REMOTE_ADDR="192.0.2.9")
    assert denied.status_code == 429


def test_a_large_upload_is_streamed(settings: Any, client: Client) -> None:
    """Not read into memory for a look at one field."""
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    settings.FILE_UPLOAD_MAX_MEMORY_SIZE = 1000
    serve(ratelimit("1/d", by="field:username")(reading))
    upload = {"username": "bob", "file": SimpleUploadedFile("a.txt", b"x" * 5000)}
    response = client.post("/view?how=POST", upload)
    assert response.json() == {"username": "bob", "file": "x" * 5000}
    assert client.post("/view?how=POST", multipart()).status_code == 429


def test_a_body_that_is_too_large_is_the_views_to_refuse(settings: Any, client: Client) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 10
    serve(ratelimit("2/d", by="field:username")(reading))
    body = json.dumps({"username": "bob" * 10})
    assert client.post("/view?how=body", body, "application/json").status_code == 400
    streamed = client.post("/view?how=stream", body, "application/json")
    assert streamed.content.decode() == body
    assert list(left(streamed).values()) == [0]


@pytest.mark.parametrize("length", ["", "0", "-1"])
def test_a_length_that_is_none(length: str) -> None:
    """Django then sees no form; the stream is left alone."""
    view = ratelimit("1/d", by="field:username")(hello)
    options = {"data": b"a=1", "content_type": "application/x-www-form-urlencoded"}
    assert passes(view, method="post", CONTENT_LENGTH=length, **options)
    assert not passes(view, method="post", CONTENT_LENGTH=length, **options)


@pytest.mark.parametrize("order", ["multipart/form-data", "multipart/form-data; boundary=é"])
def test_a_form_that_can_not_be_read_is_refused_by_django(client: Client, order: str) -> None:
    """As it would be in the view: Django tells it only once."""
    serve(ratelimit("1/d", by="field:username")(reading))
    assert client.post("/view?how=POST", b"nonsense", order).status_code == 400


def test_a_form_that_was_parsed_before(client: Client) -> None:
    """As a stream, by another middleware or decorator."""
    limited = ratelimit("1/d", by="field:username")(reading)

    def parsing(request: HttpRequest) -> HttpResponse:
        request.POST  # noqa: B018
        return limited(request)

    serve(parsing)
    assert client.post("/view?how=POST", multipart()).json()["username"] == "bob"
    assert client.post("/view?how=POST", multipart()).status_code == 429


@pytest.mark.parametrize("kind", ["application/json", "application/x-www-form-urlencoded"])
def test_a_body_that_was_read_before(client: Client, kind: str) -> None:
    """What is left of it can't be parsed: by address."""
    limited = ratelimit("1/d", by="field:username")(reading)

    def consuming(request: HttpRequest) -> HttpResponse:
        assert request.read(1)
        return limited(request)

    serve(consuming)
    first, second = (client.post("/view?how=stream", b"a=1&b=2", kind) for _ in range(2))
    assert first.content == b"=1&b=2"
    assert second.status_code == 429


@pytest.mark.parametrize("kind", ["application/json", "multipart"])
def test_fields_below_drf(client: Client, kind: str) -> None:
    """Cases 64 and 69: of what DRF has parsed, which the view reads too."""

    @api_view(["POST"])
    @ratelimit("1/d", by="field:username")
    def view(request: Any) -> Response:
        return Response({"read": request.data["username"]})

    serve(view)
    arguments = ('{"username": "bob"}', kind) if kind != "multipart" else (multipart(),)
    assert client.post("/view", *arguments).json() == {"read": "bob"}
    assert client.post("/view", *arguments, REMOTE_ADDR="192.0.2.9").status_code == 429


def test_what_drf_can_not_parse_is_its_to_refuse(client: Client) -> None:
    serve(api_view(["POST"])(ratelimit("1/d", by="field:username")(hello)))
    response = client.post("/view", "{", "application/json")
    assert response.status_code == 400
    assert "JSON parse error" in response.json()["detail"]
