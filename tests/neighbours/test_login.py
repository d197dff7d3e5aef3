"""Login pages of other apps, limited as docs/neighbours.md shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import urls as accounts_urls
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView
from django.test import Client
from django.urls import include, path, resolve, reverse

from ratelimits.decorators import ratelimit
from ratelimits.testing import fresh_counts
from tests.doors import is_silent, left, make_plan
from tests.neighbours.accounts import acting as accounts
from tests.neighbours.page import as_module, sample
from tests.processes import run_processes

OURS = "ratelimits.middleware.RateLimitMiddleware"
LOGIN_REQUIRED = "django.contrib.auth.middleware.LoginRequiredMiddleware"
NAMES = sample("def guarded", "def limited")
ADMIN = "/admin/login/?next=/admin/"
HERE = "/accounts/login/"

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("still")]
Try = Callable[..., Any]
one = ratelimit("1/d", by="ip", methods=["POST"], name="one")
SPELLINGS = ["ada", " ada", "ada\t ", "\uff41da"]


@pytest.fixture(autouse=True)
def served(settings: Any) -> None:
    """The page's URLs. Whoever logged in has a password that nobody guesses here."""
    own = path("own/", NAMES["guarded"](LoginView.as_view()))
    urls = as_module(NAMES)
    plain = path("plain/", include("django.contrib.auth.urls"))
    # Of patterns with one name, the last one is how it is reversed.
    urls.urlpatterns = [own, plain, *urls.urlpatterns]  # type: ignore[attr-defined]
    settings.ROOT_URLCONF = urls
    settings.MIDDLEWARE = [OURS, *settings.MIDDLEWARE, LOGIN_REQUIRED]
    settings.LOGIN_URL = "/own/"
    settings.TEMPLATES = with_template("registration/login.html", settings.TEMPLATES[0])
    User.objects.create_superuser("ada", password="right")


def with_template(name: str, engine: dict[str, Any]) -> list[dict[str, Any]]:
    """One that a project would have to write."""
    pages = ("django.template.loaders.locmem.Loader", {name: "{{ form }}"})
    loaders = [pages, "django.template.loaders.app_directories.Loader"]
    return [{**engine, "APP_DIRS": False, "OPTIONS": {**engine["OPTIONS"], "loaders": loaders}}]


@pytest.fixture(params=["/own/", ADMIN])
def attempt(request: pytest.FixtureRequest) -> Try:
    def attempt(name: str, address: str = "192.0.2.1", password: str = "wrong") -> Any:
        form = {"username": name, "password": password}
        return Client().post(request.param, form, REMOTE_ADDR=address)

    return attempt


def test_five_a_minute_by_address(attempt: Try) -> None:
    tries = [attempt(f"user{number}") for number in range(6)]
    assert [answer.status_code for answer in tries] == [200] * 5 + [429]
    assert tries[-1].headers["Retry-After"] == "12"
    assert attempt("ada", password="right").status_code == 429
    assert attempt("ada", "192.0.2.2", "right").status_code == 302


def test_twenty_an_hour_by_account(attempt: Try) -> None:
    tries = [attempt("ada", f"192.0.2.{number}") for number in range(21)]
    assert [answer.status_code for answer in tries] == [200] * 20 + [429]
    # From anywhere, with the right password too; but nobody else.
    assert attempt("ada", "198.51.100.1", "right").status_code == 429
    assert attempt("bob", "198.51.100.1").status_code == 200


def test_an_account_however_it_is_written(attempt: Try) -> None:
    """The form logs in all of these as the same user."""
    tries = [attempt(name, f"192.0.2.{number}") for number, name in enumerate(SPELLINGS * 5)]
    assert [answer.status_code for answer in tries] == [200] * 20
    for number, name in enumerate(SPELLINGS):
        assert attempt(name, f"198.51.100.{number}", "right").status_code == 429
    with fresh_counts():
        for number, name in enumerate(SPELLINGS):
            assert attempt(name, f"198.51.100.{number}", "right").status_code == 302


def test_both_doors_share_what_is_named_alike(attempt: Try) -> None:
    for url in ("/own/", ADMIN) * 2:
        Client().post(url, {"username": "ada"}, REMOTE_ADDR="192.0.2.1")
    assert left(attempt("ada")) == {"login": 0, "account": 15}


def test_looking_at_the_page_is_free(attempt: Try) -> None:
    """And strangers may see it, though every page needs a login."""
    for url in ("/own/", ADMIN, HERE):
        answers = [Client().get(url) for _ in range(12)]
        assert {answer.status_code for answer in answers} == {200}
        assert all(map(is_silent, answers))
    assert left(attempt("ada")) == {"login": 4, "account": 19}


def test_the_admin_still_leads_to_its_login() -> None:
    assert reverse("admin:login") == "/admin/login/"
    answer = Client().get("/admin/ratelimits/")
    assert (answer.status_code, answer["Location"]) == (
        302,
        "/admin/login/?next=/admin/ratelimits/",
    )


def test_every_form_of_what_is_included() -> None:
    """A password that is to be reset is an attempt, too."""
    client = Client()
    reset = reverse("password_reset")
    assert (HERE, reset) == (reverse("login"), "/accounts/password_reset/")
    answers = [client.post(url, {"username": "ada", "email": "x"}) for url in (HERE, reset) * 5]
    assert {answer.status_code for answer in answers} == {200}
    assert client.post(reset, {"email": "x"}).status_code == 429
    assert client.get(reset).status_code == 200


def test_what_is_included_may_include_others(settings: Any) -> None:
    """With names and arguments of their own, as allauth has them."""
    inner = (accounts_urls.urlpatterns, "inner")
    shown = path("<int:shop>/", include(inner, namespace="of-shop"), {"extra_context": {}})
    urls = as_module({"urlpatterns": [NAMES["limited"](path("all/", include([shown])), one)]})
    settings.ROOT_URLCONF = urls
    assert reverse("of-shop:password_reset", args=[7]) == "/all/7/password_reset/"
    match = resolve("/all/7/login/")
    assert (match.kwargs, match.app_names) == ({"shop": 7, "extra_context": {}}, ["inner"])
    answers = [Client().post("/all/7/login/", {"username": "ada"}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 429]


def test_a_prefix_counts_by_the_plan(settings: Any) -> None:
    """All that is asked for below it, by the address of who is not logged in."""
    make_plan("api 3/d")
    settings.RATELIMITS = {"PROTECT": ["/plain/"]}
    answers = [Client().get("/plain/login/") for _ in range(2)]
    # Turned away by LoginRequiredMiddleware, which is further in.
    answers.append(Client().get("/plain/password_change/"))
    assert [(answer.status_code, left(answer)) for answer in answers[:2]] == [
        (200, {"api": 2}),
        (200, {"api": 1}),
    ]
    assert answers[2].status_code == 302
    assert Client().post("/plain/login/", {"username": "ada"}).status_code == 429
    ada = Client()
    ada.force_login(User.objects.get())
    assert left(ada.get("/plain/password_change/")) == {"api": 2}


def test_allauth() -> None:
    (told,) = run_processes(
        accounts.act, 1, env={"DJANGO_SETTINGS_MODULE": "tests.neighbours.accounts.settings"}
    )
    assert told == {
        "looking": [200] * 7,
        "one address": [200] * 5 + [429],
        "right, from there": 429,
        "right": 302,
        # However it is written; allauth itself sends away who failed too often.
        "one account": [200] * 19 + [429],
    }
