"""Callers that other apps know: the resolvers of docs/neighbours.md."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.urls import path
from django.utils import timezone
from rest_framework.permissions import AllowAny, IsAuthenticated
from rest_framework.response import Response
from rest_framework.views import APIView
from rest_framework_simplejwt.authentication import (
    JWTAuthentication,
    JWTStatelessUserAuthentication,
)
from rest_framework_simplejwt.tokens import AccessToken

from ratelimits.decorators import ratelimit
from ratelimits.limiter import peek
from ratelimits.throttling import PlanRateThrottle
from tests.doors import left, make_plan
from tests.neighbours.page import as_module, sample
from tests.views import hello

OURS = "ratelimits.middleware.RateLimitMiddleware"
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]


class ByToken(APIView):
    authentication_classes = [JWTAuthentication]
    permission_classes = [IsAuthenticated]
    throttle_classes = [PlanRateThrottle]

    def get(self, request: Any) -> Response:
        return Response({})


class Stateless(ByToken):
    authentication_classes = [JWTStatelessUserAuthentication]


class Open(ByToken):
    authentication_classes: Any = []
    permission_classes = [AllowAny]


urlpatterns = [
    path("token", ByToken.as_view()),
    path("stateless", Stateless.as_view()),
    path("drf", Open.as_view()),
    path("decorated", ratelimit()(hello)),
    path("protected", hello),
]


@pytest.fixture(autouse=True)
def plan(db: None, settings: Any) -> None:
    make_plan("api 10/d")
    settings.MIDDLEWARE = [OURS]
    settings.SIMPLE_JWT = {"SIGNING_KEY": "a key that is long enough to sign with"}


def used(key: str) -> int:
    (outcome,) = peek(key).outcomes
    return 10 - outcome.remaining


def call(url: str, credential: str, address: str = "192.0.2.1") -> Any:
    return Client().get(url, headers={"Authorization": credential}, REMOTE_ADDR=address)


def as_shown(resolver: str, path: str, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's resolver, where its settings look for it."""
    names = sample(resolver, path)
    monkeypatch.setitem(sys.modules, "project.tenants", as_module(names))
    settings.RATELIMITS = {**names["RATELIMITS"], "PROTECT": ["/protected"]}


# djangorestframework-api-key


@pytest.fixture
def keys(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Its model, with a table for this test; and the resolver of the page."""
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "rest_framework_api_key"]
    as_shown("def by_api_key", "project.tenants.by_api_key", settings, monkeypatch)
    from rest_framework_api_key.models import APIKey

    with connection.schema_editor() as editor:
        editor.create_model(APIKey)
    yield APIKey.objects
    # As its app was installed for the first time: pages of the admin would look for the app.
    if admin.site.is_registered(APIKey):
        admin.site.unregister(APIKey)
    with connection.schema_editor() as editor:
        editor.delete_model(APIKey)


@pytest.mark.parametrize("url", ["/drf", "/decorated", "/protected"])
def test_a_verified_key_is_a_tenant(keys: Any, url: str) -> None:
    row, key = keys.create_key(name="shop")
    for number in range(3):
        call(url, f"Api-Key {key}", f"192.0.2.{number}")
    assert used(f"key:{row.prefix}") == 3


@pytest.mark.parametrize("url", ["/drf", "/decorated", "/protected"])
def test_a_key_that_is_none_counts_by_address(keys: Any, url: str) -> None:
    """Revoked, expired, wrong after a right prefix, made up, or another scheme."""
    past = timezone.now() - timedelta(days=1)
    made = [keys.create_key(name="old", expiry_date=past), keys.create_key(name="x", revoked=True)]
    row, key = keys.create_key(name="shop")
    made.append((row, f"{row.prefix}.wrong"))
    tried = [f"Api-Key {wrong}" for _, wrong in made]
    tried += ["Api-Key made.up", "Api-Key", f"Bearer {key}", "Api-Key \xff.\xff"]
    answers = [call(url, credential) for credential in tried]
    assert [left(answer)["api"] for answer in answers] == [9, 8, 7, 6, 5, 4, 3]
    assert [used(f"key:{row.prefix}") for row, _ in made] == [0, 0, 0]


def test_it_costs_one_query(keys: Any, django_assert_num_queries: Any) -> None:
    _, key = keys.create_key(name="shop")
    call("/drf", f"Api-Key {key}")
    with django_assert_num_queries(1):
        call("/drf", f"Api-Key {key}")


# djangorestframework-simplejwt


@pytest.fixture
def by_organization(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    as_shown("def by_organization", "project.tenants.by_organization", settings, monkeypatch)


def bearer(**claims: Any) -> str:
    """A token as the app makes it for a user who has logged in."""
    user, _ = User.objects.get_or_create(username="ada")
    token = AccessToken.for_user(user)
    for name, value in claims.items():
        token[name] = value
    return f"Bearer {token}"


@pytest.mark.parametrize("url", ["/token", "/stateless"])
def test_a_user_of_a_token_is_a_tenant(url: str) -> None:
    assert left(call(url, bearer())) == {"api": 9}
    assert left(call(url, bearer(), "192.0.2.2")) == {"api": 8}
    assert used(f"user:{User.objects.get().pk}") == 2


@pytest.mark.parametrize("url", ["/token", "/stateless"])
def test_an_organisation_among_the_claims(by_organization: None, url: str) -> None:
    call(url, bearer(organization="acme"))
    call(url, bearer())
    assert (used("org:acme"), used(f"user:{User.objects.get().pk}")) == (1, 1)


@pytest.mark.parametrize("url", ["/token", "/stateless"])
def test_a_forged_or_expired_token_touches_nobody(by_organization: None, url: str) -> None:
    head, claims, signature = bearer(organization="acme").split(".")
    forged = [f"{head}.{claims}.{signature[:-4]}AAAA", f"{head}.{claims}.", bearer(exp=1)]
    answers = [call(url, credential) for credential in forged]
    assert [answer.status_code for answer in answers] == [401] * 3
    # Nor does it where tokens are not read at all.
    answers = [call(url, credential) for url in ("/decorated", "/drf") for credential in forged]
    assert [left(answer)["api"] for answer in answers] == [9, 8, 7, 6, 5, 4]
    assert (used("org:acme"), used(f"user:{User.objects.get().pk}")) == (0, 0)
