"""The check of what browsers let scripts of other origins read."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from django.conf import settings as project
from django.core.checks import WARNING
from django.test import Client, override_settings
from django.urls import path

from ratelimits.decorators import ratelimit
from tests.checking import OURS, ids, only
from tests.views import hello

CORS = "corsheaders.middleware.CorsMiddleware"
CHAIN = [CORS, OURS]
NEW = ["RateLimit-Policy", "RateLimit"]
TRIO = ["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"]
WAIT = ["Retry-After"]

pytestmark = pytest.mark.urls(__name__)
urlpatterns = [path("once", ratelimit("1/d", by="ip")(hello))]


def pasted(**settings: Any) -> list[str]:
    """What the hint says to write, as Python reads it."""
    message = only(MIDDLEWARE=CHAIN, **settings)
    assert (message.id, message.level) == ("ratelimits.W023", WARNING)
    before, _, value = str(message.hint).partition(" = ")
    assert before == "Say CORS_EXPOSE_HEADERS"
    names: list[str] = ast.literal_eval(value)
    return names


@pytest.mark.parametrize(
    ("headers", "names"),
    [
        (["ratelimit", "ratelimit-legacy"], [*NEW, *TRIO, *WAIT]),
        (["ratelimit"], [*NEW, *WAIT]),
        (["x-ratelimit"], [*(f"X-{name}" for name in TRIO), *WAIT]),
        ([], WAIT),
    ],
)
def test_the_setting_to_paste(headers: list[str], names: list[str]) -> None:
    ours = {"HEADERS": headers}
    assert pasted(RATELIMITS=ours) == names
    assert ids(MIDDLEWARE=CHAIN, RATELIMITS=ours, CORS_EXPOSE_HEADERS=names) == []


def test_what_is_exposed_already_stays() -> None:
    exposed = ("X-Request-Id", "retry-after", "RATELIMIT")
    ours = {"HEADERS": ["ratelimit"]}
    names = pasted(RATELIMITS=ours, CORS_EXPOSE_HEADERS=exposed)
    assert names == [*exposed, "RateLimit-Policy"]
    assert ids(MIDDLEWARE=CHAIN, RATELIMITS=ours, CORS_EXPOSE_HEADERS=names) == []


def test_a_star_is_everything_unless_cookies_go_along() -> None:
    star = {"CORS_EXPOSE_HEADERS": ["*"]}
    assert ids(MIDDLEWARE=CHAIN, **star) == []
    assert pasted(**star, CORS_ALLOW_CREDENTIALS=True) == [*NEW, *TRIO, *WAIT]


@pytest.mark.parametrize("exposed", [None, 7, "RateLimit", [7]])
def test_what_the_other_app_reports_itself(exposed: Any) -> None:
    assert ids(MIDDLEWARE=CHAIN, CORS_EXPOSE_HEADERS=exposed) == []


def test_an_error_of_ours_is_enough() -> None:
    assert ids(MIDDLEWARE=CHAIN, RATELIMITS={"HEADERS": 7}) == ["E003"]


def test_the_app_is_enough() -> None:
    assert ids(INSTALLED_APPS=[*project.INSTALLED_APPS, "corsheaders"]) == ["W023"]


def test_where_nothing_counts_nothing_is_published() -> None:
    assert ids(MIDDLEWARE=CHAIN, RATELIMITS={"MODE": "off"}) == []
    assert ids() == []


@pytest.mark.django_db(transaction=True)
def test_all_that_is_published_is_asked_for() -> None:
    """What a browser is sent, on a refusal and otherwise, is what has to be exposed."""
    ours = {"HEADERS": ["ratelimit", "ratelimit-legacy", "x-ratelimit"]}
    names = pasted(RATELIMITS=ours)
    cors = {"CORS_ALLOW_ALL_ORIGINS": True, "CORS_EXPOSE_HEADERS": names}
    sent: set[str] = set()
    with override_settings(MIDDLEWARE=CHAIN, RATELIMITS=ours, **cors):
        for status in (200, 429):
            response = Client().get("/once", headers={"Origin": "https://shop.example"})
            assert response.status_code == status
            sent |= {name for name in response.headers if "RateLimit" in name or "Retry" in name}
            assert response.headers["Access-Control-Expose-Headers"] == ", ".join(names)
    assert sent == set(names)
