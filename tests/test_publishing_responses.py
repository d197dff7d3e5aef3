from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseRedirect,
    StreamingHttpResponse,
)
from django.http.response import HttpResponseBase
from django.test import RequestFactory
from django.utils.http import http_date, parse_http_date
from freezegun import freeze_time

from ratelimits import receipts
from ratelimits.limits import Decision
from ratelimits.publishing.responses import publish, refusal
from tests.decisions import decision, limit, passed, violated
from tests.test_publishing_headers import TRICKY, read

ALLOWED = decision(passed(limit()))
REFUSED = decision(violated(limit(), 30))
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"


def answer(refused: Decision = REFUSED, accept: str | None = None, method="get") -> HttpResponse:
    headers = {} if accept is None else {"accept": accept}
    return refusal(getattr(RequestFactory(), method)("/", headers=headers), refused)


@pytest.mark.parametrize("status", [200, 201, 204, 404, 403, 429, 500, 503])
def test_fields_on_any_status(status: int) -> None:
    """S-20 and case 50."""
    response = HttpResponse(status=status)
    publish(response, ALLOWED)
    assert read(response["RateLimit-Policy"]) == [("default", {"q": 100, "w": 60})]
    assert read(response["RateLimit"]) == [("default", {"r": 50, "t": 30})]
    assert "Retry-After" not in response
    assert "Cache-Control" not in response


def test_fields_go_before_a_streamed_body() -> None:
    """S-09: in the header section, where no chunk has to be made for them."""

    made = []

    def chunks() -> Iterator[bytes]:
        made.append(1)
        yield b"body"

    response = StreamingHttpResponse(chunks())
    publish(response, ALLOWED)
    assert made == []
    assert "RateLimit" in response.headers
    assert "Trailer" not in response.headers


@pytest.mark.parametrize("told", [ALLOWED, REFUSED])
def test_publishing_twice_is_publishing_once(told: Decision) -> None:
    """S-12: no limit is listed twice."""
    response = HttpResponse()
    publish(response, told)
    once = dict(response.items())
    publish(response, told)
    assert dict(response.items()) == once


def test_later_numbers_replace_earlier_ones() -> None:
    response = HttpResponse()
    publish(response, ALLOWED)
    publish(response, decision(passed(limit(), 49)))
    assert read(response["RateLimit"])[0][1]["r"] == 49


@pytest.mark.parametrize("status", [301, 302, 303, 304, 307])
def test_redirect_says_nothing_that_stops_a_client(settings, status: int) -> None:
    """S-27 and case 50: r = 0 of any limit would keep it from following."""
    settings.RATELIMITS = {"HEADERS": ["ratelimit", "ratelimit-legacy", "x-ratelimit"]}
    last = decision(passed(limit()), passed(limit("b"), 0))
    response = HttpResponse(status=status)
    publish(response, last)
    assert [name for name, _ in read(response["RateLimit-Policy"])] == ["default", "b"]
    assert [name for name in response.headers if "ratelimit" in name.lower()] == [
        "RateLimit-Policy"
    ]


def test_redirect_with_something_left_tells_it() -> None:
    """S-27: a limit that nobody sees has no say."""
    hidden = [passed(limit("s", mode="shadow"), 0), passed(limit("e", per="everyone"), 0)]
    response = HttpResponseRedirect("/next")
    publish(response, decision(passed(limit(), 1), *hidden))
    assert read(response["RateLimit"])[0][1]["r"] == 1
    assert response["RateLimit-Remaining"] == "1"


def test_redirect_loses_what_an_inner_layer_had_told() -> None:
    """S-27: as the throttle of a view does, before the status is known."""
    last = decision(passed(limit(), 0))
    response = HttpResponseRedirect("/next", headers=dict(last.headers()))
    publish(response, last)
    assert "RateLimit" not in response
    assert "RateLimit-Policy" in response


NOW = "2026-11-30 12:00:00"


@freeze_time(NOW)
@pytest.mark.parametrize(
    ("theirs", "kept"),
    [
        ("120", True),
        ("30", True),
        ("29", False),
        ("0", False),
        ("", False),
        ("Mon, 30 Nov 2026 12:02:00 GMT", True),
        ("Monday, 30-Nov-26 12:02:00 GMT", True),
        ("Mon Nov 30 12:02:00 2026", True),
        ("Mon, 30 Nov 2026 12:00:29 GMT", False),
        ("Sun, 06 Nov 1994 08:49:37 GMT", False),
        ("soon", True),
        ("2.5", True),
        ("\u00b2", True),
        ("9" * 5000, True),
    ],
)
def test_a_refusal_never_shortens_a_wait(theirs: str, kept: bool) -> None:
    """Case 58: the later of two; what we can't read is not ours to replace."""
    response = HttpResponse(status=429, headers={"Retry-After": theirs})
    publish(response, REFUSED)
    assert response["Retry-After"] == (theirs if kept else "30")


@pytest.mark.parametrize("theirs", ["120", "1", "Sun, 06 Nov 1994 08:49:37 GMT"])
def test_a_view_that_was_let_through_keeps_its_own_wait(theirs: str) -> None:
    """Case 58: such as one passed on from another service."""
    response = HttpResponse(status=503, headers={"Retry-After": theirs})
    publish(response, ALLOWED)
    assert response["Retry-After"] == theirs
    assert "RateLimit" in response
    assert "Cache-Control" not in response


@pytest.mark.parametrize("refused", [REFUSED, decision(unavailable=True)])
@pytest.mark.parametrize("status", [200, 204, 302, 399])
def test_a_view_that_answers_even_so_refuses_nobody(refused: Decision, status: int) -> None:
    """One that asked the limiter itself, and does less for those who are over their limit."""
    response = HttpResponse(status=status, headers={"Cache-Control": "max-age=60"})
    publish(response, refused)
    assert "Retry-After" not in response
    assert response["Cache-Control"] == "max-age=60"
    assert ("RateLimit-Policy" in response) is not refused.unavailable


def test_a_view_may_say_when_where_we_can_not() -> None:
    response = HttpResponse(status=429, headers={"Retry-After": "5"})
    publish(response, decision(violated(limit(), None)))
    assert response["Retry-After"] == "5"


@pytest.mark.parametrize("wait", [0.000_001, 1, 1.5, 3600])
def test_retry_after_is_whole_seconds_not_before_t(wait: float) -> None:
    """S-21, S-33."""
    response = answer(decision(violated(limit(), wait)))
    assert re.fullmatch("[1-9][0-9]*", response["Retry-After"])
    assert int(response["Retry-After"]) >= read(response["RateLimit"])[0][1]["t"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, {"no-store"}),
        ("no-store", {"no-store"}),
        ("private, max-age=60", {"private", "max-age=60", "no-store"}),
    ],
)
def test_refusals_may_not_be_stored(before: str | None, after: set[str]) -> None:
    """S-32 and case 56."""
    response = HttpResponse(status=429)
    if before is not None:
        response["Cache-Control"] = before
    publish(response, REFUSED)
    assert set(response["Cache-Control"].split(", ")) == after


@pytest.mark.parametrize(
    "refused",
    [
        REFUSED,
        decision(violated(limit(), None)),
        decision(violated(limit(per="everyone"))),
        decision(unavailable=True),
    ],
)
@pytest.mark.parametrize("accept", [BROWSER, "application/json"])
def test_status_is_that_of_the_decision(refused: Decision, accept: str) -> None:
    """S-30, S-32 and case 54: never 403."""
    response = answer(refused, accept)
    assert response.status_code == refused.status
    assert response["Cache-Control"] == "no-store"
    assert ("Retry-After" in response) == (refused.retry_after is not None)


@pytest.mark.parametrize(
    "accept",
    [
        None,
        "*/*",
        "",
        "application/json",
        "application/problem+json",
        "application/json, text/plain, */*",
        "text/html;q=0.5, application/json",
        "text/html, application/json",
        "text/html, application/problem+json",
        "text/html;q=0, */*;q=0.1",
        "text/plain",
        "image/png",
        "application/xml",
        "text/csv;q=oops,,;",
    ],
)
def test_json_for_everybody_else(accept: str | None) -> None:
    """S-29, S-31: and 406 for nobody."""
    response = answer(accept=accept)
    assert response.status_code == 429
    assert response["Content-Type"] == "application/problem+json"
    assert json.loads(response.content)["status"] == 429
    assert response["Vary"] == "Accept"


@pytest.mark.parametrize(
    "accept", [BROWSER, "text/html", "text/*", "application/json;q=0.5, text/html;q=0.6"]
)
def test_page_for_a_browser(accept: str) -> None:
    response = answer(accept=accept)
    assert response.status_code == 429
    assert response["Content-Type"] == "text/html; charset=utf-8"
    assert response["Vary"] == "Accept"
    page = response.content.decode()
    assert "<h1>Quota Exceeded</h1>" in page
    assert "Limit is 100 requests per minute for this key." in page
    assert "You can try again in 30 seconds." in page
    # Whoever has but the page can send that.
    assert receipts.read(page).limit == "default"


def test_page_obeys_a_strict_content_security_policy() -> None:
    """Nothing inline and nothing to load; the browser's own colours, light or dark."""
    page = answer(accept=BROWSER).content.decode()
    assert not re.search(r"<(script|style|link|img|iframe)|\s(style|on\w+|src)=|http-equiv", page)
    assert '<meta name="color-scheme" content="light dark">' in page
    assert '<html lang="en-us" dir="ltr">' in page
    assert page.count("<h1>") == page.count("<main>") == 1


@pytest.mark.parametrize(
    ("wait", "words"),
    [
        (0.5, "1 second"),
        (120, "120 seconds"),
        (121, "3 minutes"),
        (7200, "120 minutes"),
        (7201, "3 hours"),
        (48 * 3600, "48 hours"),
        (48 * 3600 + 1, "3 days"),
    ],
)
def test_wait_on_the_page_is_never_too_short(wait: float, words: str) -> None:
    page = answer(decision(violated(limit(), wait)), BROWSER).content.decode()
    assert f"You can try again in {words}." in page


def test_page_says_if_trying_again_is_in_vain() -> None:
    page = answer(decision(violated(limit(), None, cost=101)), BROWSER).content.decode()
    assert "Trying again will not help." in page
    assert "You can try again" not in page


@pytest.mark.parametrize("templates", [[], "without directories"])
def test_projects_without_templates_answer_in_json(settings, templates) -> None:
    backend = {"BACKEND": "django.template.backends.django.DjangoTemplates"}
    settings.TEMPLATES = [backend] if templates else []
    response = answer(accept=BROWSER)
    assert response.status_code == 429
    assert response["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("accept", [BROWSER, "*/*"])
def test_head_is_get_without_a_body(accept: str) -> None:
    """The server drops the body; everything else is the same."""
    head, get = (answer(accept=accept, method=method) for method in ("head", "get"))
    assert head.status_code == get.status_code == 429
    assert dict(head.items()) == dict(get.items())


def test_tricky_name_in_a_whole_response() -> None:
    """Case 57: neither BadHeaderError nor UnicodeEncodeError, and fields that parse."""
    response = answer(decision(violated(limit(TRICKY))))
    response.serialize_headers().decode("ascii")
    names = json.loads(response.content)["violated-policies"]
    assert (
        names == [read(response["RateLimit"])[0][0]] == [read(response["RateLimit-Policy"])[0][0]]
    )


def own(request: HttpRequest, refused: Decision) -> HttpResponseBase:
    return HttpResponse("slow down", status=420, headers={"Retry-After": request.GET["wait"]})


def undecided(request: HttpRequest, refused: Decision) -> None:
    return None


@pytest.mark.parametrize(("theirs", "sent"), [("120", "120"), ("3", "30")])
def test_own_response_gets_the_fields(settings, theirs: str, sent: str) -> None:
    """Case 51: the body and status are the project's."""
    settings.RATELIMITS = {"RESPONSE": f"{__name__}.own"}
    response = refusal(RequestFactory().get("/", {"wait": theirs}), REFUSED)
    assert (response.status_code, response.content) == (420, b"slow down")
    assert response["Retry-After"] == sent
    assert "RateLimit" in response
    assert "RateLimit-Policy" in response
    assert response["Cache-Control"] == "no-store"
    assert "Vary" not in response


@pytest.mark.parametrize("status", [200, 302])
def test_own_response_of_any_status_may_not_be_stored(settings, status: int) -> None:
    settings.RATELIMITS = {"RESPONSE": lambda request, refused: HttpResponse(status=status)}
    assert answer()["Cache-Control"] == "no-store"


def test_own_callable_may_leave_it_to_us(settings) -> None:
    settings.RATELIMITS = {"RESPONSE": undecided}
    assert answer()["Content-Type"] == "application/problem+json"


def test_dates_of_a_view_are_not_rewritten() -> None:
    """S-33 and case 58: the form stays the view's."""
    date = http_date(parse_http_date("Fri, 31 Dec 9999 23:59:59 GMT"))
    response = HttpResponse(status=503, headers={"Retry-After": date})
    publish(response, REFUSED)
    assert response["Retry-After"] == date
