from __future__ import annotations

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from asgiref.sync import markcoroutinefunction, sync_to_async
from django.contrib.auth.models import AnonymousUser, Group, User
from django.http import HttpRequest
from django.test import RequestFactory, override_settings
from rest_framework.authtoken.models import Token
from rest_framework.request import Request

from ratelimits.tenants import (
    api_key,
    atenant_of,
    attribute,
    by_auth,
    by_user,
    is_async,
    is_exempt,
    resolvers,
    tenant_of,
)

factory = RequestFactory()


def asking(**attributes: Any) -> Any:
    """A request on which middleware left something."""
    request = factory.get("/")
    for name, value in attributes.items():
        setattr(request, name, value)
    return request


def chain(*entries: Any) -> Any:
    return override_settings(RATELIMITS={"TENANT": list(entries)})


def acme(request: Any) -> str:
    return "acme"


def nobody(request: Any) -> None:
    return None


def empty(request: Any) -> str:
    return ""


def refused(request: Any) -> Any:
    return request.META.get("no such field") is not None and "acme"


async def refused_async(request: Any) -> Any:
    return refused(request)


def number(request: Any) -> int:
    return 42


def zero(request: Any) -> int:
    return 0


async def acme_async(request: Any) -> str:
    await asyncio.sleep(0)
    return "acme"


async def nobody_async(request: Any) -> None:
    await asyncio.sleep(0)


class AcmeAsync:
    async def __call__(self, request: Any) -> str:
        return await acme_async(request)


def acme_later(request: Any) -> Any:
    """Plain by its looks, but what it gives has to be awaited."""
    return acme_async(request)


@markcoroutinefunction
def acme_marked(request: Any) -> Any:
    return acme_async(request)


class TestChain:
    def test_by_default_the_user(self) -> None:
        assert resolvers() == (by_user,)

    @pytest.mark.parametrize(
        "setting",
        [
            acme,
            f"{__name__}.acme",
            [acme],
            [f"{__name__}.acme"],
            (nobody, f"{__name__}.acme"),
            [f"{__name__}.nobody", acme, number],
            [empty, acme],
            [refused, acme],
        ],
    )
    def test_the_first_that_answers_wins(self, setting: Any) -> None:
        with override_settings(RATELIMITS={"TENANT": setting}):
            assert tenant_of(factory.get("/")) == "acme"

    async def test_false_is_no_answer(self) -> None:
        with chain(refused, refused_async):
            assert await atenant_of(factory.get("/")) is None

    @pytest.mark.parametrize("setting", [[], [nobody], [nobody, empty], [refused]])
    def test_nobody_answers(self, setting: Any) -> None:
        with override_settings(RATELIMITS={"TENANT": setting}):
            assert tenant_of(factory.get("/")) is None

    @pytest.mark.parametrize(("resolver", "key"), [(number, "42"), (zero, "0")])
    def test_a_key_is_text(self, resolver: Any, key: str) -> None:
        with chain(resolver):
            assert tenant_of(factory.get("/")) == key

    def test_those_after_the_answer_are_not_asked(self) -> None:
        with chain(acme, lambda request: pytest.fail("asked")):
            assert tenant_of(factory.get("/")) == "acme"

    def test_a_bad_path_is_an_error(self) -> None:
        with chain("nowhere.resolver"), pytest.raises(ImportError, match="nowhere"):
            tenant_of(factory.get("/"))

    def test_one_tenant_for_several_users(self) -> None:
        """Case 11: the organisation that a request is for pays, whoever of its users sends it."""
        with chain(attribute("organization", "org:")):
            keys = {
                (user, organization): tenant_of(
                    asking(user=SimpleNamespace(pk=user), organization=organization)
                )
                for user in "UV"
                for organization in (1, 2)
            }
        assert keys["U", 1] == keys["V", 1] == "org:1"
        assert keys["U", 2] == keys["V", 2] == "org:2"


ASYNC = [
    acme_async,
    AcmeAsync(),
    partial(acme_async),
    acme_later,
    acme_marked,
    f"{__name__}.acme_async",
]


class TestAsync:
    @pytest.mark.parametrize("resolver", ASYNC)
    async def test_awaited(self, resolver: Any) -> None:
        with chain(nobody, nobody_async, resolver):
            assert await atenant_of(factory.get("/")) == "acme"

    @pytest.mark.parametrize("resolver", ASYNC)
    def test_from_plain_code(self, resolver: Any) -> None:
        """Else the text of a coroutine would be the key, another for each request."""
        with chain(nobody, nobody_async, resolver):
            assert tenant_of(factory.get("/")) == "acme"

    @pytest.mark.parametrize("resolver", ASYNC)
    async def test_from_plain_code_under_a_loop(self, resolver: Any) -> None:
        with chain(nobody_async, resolver):
            assert await sync_to_async(tenant_of)(factory.get("/")) == "acme"

    @pytest.mark.parametrize("resolver", [acme, f"{__name__}.acme", number])
    async def test_plain_resolvers(self, resolver: Any) -> None:
        expected = "42" if resolver is number else "acme"
        with chain(nobody, resolver):
            assert await atenant_of(factory.get("/")) == expected

    async def test_nobody_answers(self) -> None:
        with chain(nobody, nobody_async, empty):
            assert await atenant_of(factory.get("/")) is None

    @pytest.mark.django_db(transaction=True)
    async def test_plain_resolvers_may_read_the_database(self) -> None:
        def first_group(request: Any) -> str:
            return Group.objects.get().name

        await Group.objects.acreate(name="acme")
        with chain(first_group):
            assert await atenant_of(factory.get("/")) == "acme"

    @pytest.mark.parametrize(
        ("resolver", "expected"),
        [
            (acme, False),
            (acme_later, False),
            (acme_async, True),
            (acme_marked, True),
            (AcmeAsync(), True),
            (partial(acme_async), True),
            (partial(acme), False),
        ],
    )
    def test_is_async(self, resolver: Any, expected: bool) -> None:
        assert is_async(resolver) is expected


class TestByUser:
    def test_authenticated(self) -> None:
        assert by_user(asking(user=User(pk=7))) == "user:7"

    @pytest.mark.parametrize(
        "user",
        [None, AnonymousUser(), SimpleNamespace(pk=7), SimpleNamespace(is_authenticated=False)],
    )
    def test_not_authenticated(self, user: Any) -> None:
        """Case 10."""
        assert by_user(asking(user=user)) is None

    def test_without_authentication_middleware(self) -> None:
        """Case 10."""
        assert by_user(factory.get("/")) is None

    @override_settings(REST_FRAMEWORK={"UNAUTHENTICATED_USER": None})
    def test_unauthenticated_user_of_drf_is_none(self) -> None:
        """Case 10."""
        request: Any = Request(factory.get("/"))
        assert request.user is None
        assert tenant_of(request) is None

    @pytest.mark.parametrize(
        "user",
        [SimpleNamespace(is_authenticated=True), SimpleNamespace(is_authenticated=True, pk=None)],
    )
    def test_users_without_a_row_do_not_share_a_bucket(self, user: Any) -> None:
        assert by_user(asking(user=user)) is None


class Claims:
    """Like the tokens of the usual JWT packages: claims within, and a text that changes."""

    def __init__(self, **payload: Any) -> None:
        self.payload = payload


class TestByAuth:
    def test_drf_token(self) -> None:
        """Its primary key is the secret."""
        assert Token._meta.get_field("key").primary_key
        key = by_auth(asking(auth=SimpleNamespace(key="9944b091", pk="9944b091")))
        assert key is not None and key.startswith("auth:")
        assert "9944b091" not in key
        assert by_auth(asking(auth=SimpleNamespace(key="9944b091", pk="9944b091"))) == key
        assert by_auth(asking(auth=SimpleNamespace(key="another", pk="another"))) != key

    def test_row_whose_key_is_not_its_primary_key(self) -> None:
        assert by_auth(asking(auth=SimpleNamespace(pk=12, key="secret"))) == "auth:12"
        assert by_auth(asking(auth=SimpleNamespace(pk=12))) == "auth:12"

    @pytest.mark.parametrize(
        ("claims", "expected"),
        [
            ({"sub": "acme", "exp": 1}, "auth:acme"),
            ({"user_id": 7}, "auth:7"),
            ({"sub": "acme", "user_id": 7}, "auth:acme"),
            ({"sub": "", "user_id": 7}, "auth:7"),
            ({"exp": 1}, None),
            ({}, None),
        ],
    )
    def test_claims(self, claims: dict[str, Any], expected: str | None) -> None:
        """Without a subject, the claims of each new token would be a fresh bucket."""
        assert by_auth(asking(auth=claims)) == expected
        assert by_auth(asking(auth=Claims(**claims))) == expected

    def test_text(self) -> None:
        key = by_auth(asking(auth="s3cr3t"))
        assert key is not None and key.startswith("auth:")
        assert "s3cr3t" not in key
        assert by_auth(asking(auth="s3cr3t")) == key
        assert by_auth(asking(auth="s3cr3t2")) != key

    @pytest.mark.parametrize("auth", [None, "", object(), SimpleNamespace(pk=None)])
    def test_nothing_to_tell_callers_apart_by(self, auth: Any) -> None:
        assert by_auth(asking(auth=auth)) is None

    def test_without_drf(self) -> None:
        assert by_auth(factory.get("/")) is None

    @override_settings(RATELIMITS={"TENANT": "ratelimits.tenants.by_auth"})
    def test_request_of_drf(self) -> None:
        request = Request(factory.get("/"))
        assert tenant_of(request) is None
        request.auth = {"sub": "acme"}
        assert tenant_of(request) == "auth:acme"


class TestAttribute:
    def test_path(self) -> None:
        user = SimpleNamespace(is_authenticated=True, organization=SimpleNamespace(pk=5))
        resolve = attribute("user.organization.pk", "org:")
        assert resolve(asking(user=user)) == "org:5"
        assert attribute("user.organization.pk")(asking(user=user)) == "5"

    @pytest.mark.parametrize(
        "user",
        [
            None,
            AnonymousUser(),
            SimpleNamespace(),
            SimpleNamespace(organization_id=None),
            SimpleNamespace(organization_id=""),
            SimpleNamespace(organization_id=5, is_authenticated=False),
        ],
    )
    def test_a_step_is_missing(self, user: Any) -> None:
        """Never the prefix alone, which would be one bucket for all of them."""
        assert attribute("user.organization_id", "org:")(asking(user=user)) is None
        assert attribute("user.organization_id", "org:")(factory.get("/")) is None

    def test_zero_is_a_value(self) -> None:
        assert attribute("shard", "s:")(asking(shard=0)) == "s:0"


KEYS = {"sk_live_123": "acme", "sk_live_456": "bakery"}


def find(credential: str) -> str | None:
    return KEYS.get(credential)


async def find_async(credential: str) -> str | None:
    return KEYS.get(credential)


by_header = api_key("X-API-Key", find)


class TestApiKey:
    @pytest.mark.parametrize("lookup", [find, f"{__name__}.find", find_async])
    @pytest.mark.parametrize(
        ("credential", "expected"),
        [("sk_live_123", "acme"), ("sk_live_456", "bakery"), ("made-up", None), ("", None)],
    )
    async def test_verified(self, lookup: Any, credential: str, expected: str | None) -> None:
        """A made-up credential is nobody, and so counts by address."""
        request = factory.get("/", headers={"x-api-key": credential})
        with chain(api_key("X-API-Key", lookup)):
            assert await atenant_of(request) == expected
            assert await sync_to_async(tenant_of)(request) == expected

    def test_missing(self) -> None:
        with chain(by_header):
            assert tenant_of(factory.get("/")) is None

    def test_nothing_is_asked_without_a_credential(self) -> None:
        resolver = api_key("X-API-Key", lambda credential: pytest.fail("asked"))
        assert resolver(factory.get("/")) is None

    def test_beside_the_user(self) -> None:
        with chain(f"{__name__}.by_header", by_user):
            known = factory.get("/", headers={"x-api-key": "sk_live_123"})
            assert tenant_of(known) == "acme"
            assert tenant_of(asking(user=User(pk=7))) == "user:7"

    def test_name_of_the_header(self) -> None:
        resolver = api_key("authorization", lambda credential: credential.upper())
        assert resolver(factory.get("/", headers={"Authorization": "key abc"})) == "KEY ABC"


def test_a_public_page_reads_no_session() -> None:
    """Case 67: whoever counts by address only does not make the page vary by cookie."""

    class Session:
        accessed = False

        def __getattr__(self, name: str) -> Any:
            self.accessed = True
            raise AttributeError(name)

    session = Session()
    with chain():
        assert tenant_of(asking(session=session)) is None
    assert not session.accessed


class TestExempt:
    def test_by_default_nobody(self) -> None:
        assert is_exempt(factory.get("/")) is False

    @pytest.mark.parametrize("exempt", [f"{__name__}.is_staff", lambda r: is_staff(r)])
    def test_as_the_setting_says(self, exempt: Any) -> None:
        with override_settings(RATELIMITS={"EXEMPT": exempt}):
            assert is_exempt(asking(user=User(is_staff=True))) is True
            assert is_exempt(asking(user=User(is_staff=False))) is False

    def test_the_answer_is_yes_or_no(self) -> None:
        with override_settings(RATELIMITS={"EXEMPT": lambda request: "yes"}):
            assert is_exempt(factory.get("/")) is True
        with override_settings(RATELIMITS={"EXEMPT": lambda request: None}):
            assert is_exempt(factory.get("/")) is False


def is_staff(request: HttpRequest) -> bool:
    return bool(request.user.is_staff)


@pytest.mark.django_db
def test_by_user_makes_no_query_of_its_own(django_assert_num_queries: Any) -> None:
    user = User.objects.create(username="ada")
    with django_assert_num_queries(0):
        assert tenant_of(asking(user=user)) == f"user:{user.pk}"
