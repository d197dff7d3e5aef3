from __future__ import annotations

from threading import get_ident
from typing import Any, ClassVar

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest
from django.test import RequestFactory, override_settings
from django.utils.functional import SimpleLazyObject

from ratelimits.catalog import Caller
from ratelimits.who import Counted, aat_address, acaller_of, at_address, caller_of

factory = RequestFactory()
PREFLIGHT = {"Origin": "https://shop.example", "Access-Control-Request-Method": "POST"}


def by_header(request: HttpRequest) -> str | None:
    return request.headers.get("x-tenant")


async def by_header_async(request: HttpRequest) -> str | None:
    return request.headers.get("x-tenant")


def is_staff(request: HttpRequest) -> bool:
    return bool(request.user.is_staff)


def fails(request: HttpRequest) -> bool:
    return bool(request.method.no_such_attribute)  # type: ignore[union-attr]


async def both(who: Any) -> Counted:
    """What either twin answers."""
    answer = await acaller_of(who)
    assert caller_of(who) == answer
    return answer


@pytest.mark.parametrize("resolver", [by_header])
@pytest.mark.parametrize("remote", ["192.0.2.1", "2001:db8::1"])
async def test_request_of_a_tenant(resolver: Any, remote: str) -> None:
    request = factory.get("/", headers={"x-tenant": "acme"}, REMOTE_ADDR=remote)
    address = "192.0.2.1" if remote == "192.0.2.1" else "2001:db8::/64"
    with override_settings(RATELIMITS={"TENANT": resolver}):
        assert await both(request) == Counted(Caller("acme", address))


def lazily(user: Any, asked: list[int]) -> Any:
    """As Django's AuthenticationMiddleware has it: found in the session when it is looked at."""

    def find() -> Any:
        asked.append(get_ident())
        return user

    return SimpleLazyObject(find)


class OwnRequest(HttpRequest):
    @property
    def user(self) -> Any:  # type: ignore[override]
        return lazily(User(pk=7), self.asked)

    def __init__(self, asked: list[int]) -> None:
        super().__init__()
        self.asked = asked
        self.META["REMOTE_ADDR"] = "192.0.2.1"


async def test_a_user_is_looked_up_in_a_thread() -> None:
    request, asked = factory.get("/", REMOTE_ADDR="192.0.2.1"), list[int]()
    request.user = lazily(User(pk=7), asked)
    assert (await acaller_of(request)).caller.tenant == "user:7"
    own = OwnRequest(asked)
    assert (await acaller_of(own)).caller.tenant == "user:7"
    assert len(asked) == 2
    assert get_ident() not in asked


class Member:
    """A user that a project has of its own, and finds when it is asked something."""

    def __init__(self, asked: list[int]) -> None:
        self.asked = asked

    @property
    def is_authenticated(self) -> bool:
        return self.pk == 7

    @property
    def pk(self) -> int:
        self.asked.append(get_ident())
        return 7


class LateMember(User):
    """Django's, but for one thing that it finds out when it is asked."""

    asked: ClassVar[list[int]] = []

    class Meta:
        proxy = True
        # Of no app that is installed, so that none lacks a migration for it.
        app_label = "tests"

    @property
    def is_authenticated(self) -> bool:  # type: ignore[override]
        self.asked.append(get_ident())
        return True


@pytest.mark.parametrize("is_lazy", [False, True])
@pytest.mark.parametrize("kind", ["own", "derived"])
async def test_a_user_who_may_ask_the_database_is_looked_at_in_a_thread(
    kind: str, is_lazy: bool
) -> None:
    request, asked = factory.get("/", REMOTE_ADDR="192.0.2.1"), list[int]()
    LateMember.asked = asked
    user: Any = Member(asked) if kind == "own" else LateMember(pk=7)
    request.user = lazily(user, []) if is_lazy else user
    if is_lazy:
        # It is known who it is, but not all about them.
        assert request.user.__class__ is type(user)
    assert (await acaller_of(request)).caller.tenant == "user:7"
    assert asked and get_ident() not in asked


@pytest.mark.parametrize("user", [None, User(pk=7), lazily(User(pk=7), []), AnonymousUser()])
async def test_no_thread_for_a_user_who_is_known(
    user: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = factory.get("/", REMOTE_ADDR="192.0.2.1")
    tenant = "user:7" if user and user.is_authenticated else None
    if user is not None:
        request.user = user
    monkeypatch.setattr("ratelimits.who.sync_to_async", None)
    assert await both(request) == Counted(Caller(tenant, "192.0.2.1"))


async def test_async_resolver() -> None:
    request = factory.get("/", headers={"x-tenant": "acme"}, REMOTE_ADDR="192.0.2.1")
    with override_settings(RATELIMITS={"TENANT": by_header_async, "EXEMPT": lambda request: True}):
        assert await acaller_of(request) == Counted(Caller("acme", "192.0.2.1"), exempt=True)


def test_async_resolver_from_plain_code() -> None:
    request = factory.get("/", headers={"x-tenant": "acme"}, REMOTE_ADDR="192.0.2.1")
    with override_settings(RATELIMITS={"TENANT": by_header_async}):
        assert caller_of(request) == Counted(Caller("acme", "192.0.2.1"))


async def test_anonymous() -> None:
    request = factory.get("/", REMOTE_ADDR="192.0.2.1")
    assert await both(request) == Counted(Caller(None, "192.0.2.1"))


async def test_without_an_address() -> None:
    assert await both(factory.get("/", REMOTE_ADDR="")) == Counted(Caller(None, ""))


async def test_key() -> None:
    assert await both("acme") == Counted(Caller("acme", None))


async def test_empty_key() -> None:
    with pytest.raises(ValueError, match="can't be empty"):
        caller_of("")
    with pytest.raises(ValueError, match="can't be empty"):
        await acaller_of("")


async def test_exempt() -> None:
    request = factory.get("/")
    request.user = User(pk=7, is_staff=True)
    with override_settings(RATELIMITS={"EXEMPT": is_staff}):
        assert await both(request) == Counted(Caller("user:7", "127.0.0.1"), exempt=True)
        request.user = User(pk=7, is_staff=False)
        assert await both(request) == Counted(Caller("user:7", "127.0.0.1"))


async def test_a_preflight_is_charged_to_no_tenant() -> None:
    """Browsers send it without credentials; the address still counts."""

    def refuse(request: HttpRequest) -> str:
        pytest.fail("asked for the tenant of a preflight")

    with override_settings(RATELIMITS={"TENANT": refuse}):
        request = factory.options("/", headers=PREFLIGHT, REMOTE_ADDR="192.0.2.1")
        counted = Counted(Caller(None, "192.0.2.1", only_address=True))
        assert await both(request) == counted


def asks_the_database(request: HttpRequest) -> bool:
    return User.objects.exists()


@pytest.mark.django_db(transaction=True)
async def test_exempt_may_ask_the_database_about_a_preflight() -> None:
    """In a thread, like everything of a project's that is not async."""
    request = factory.options("/", headers=PREFLIGHT, REMOTE_ADDR="192.0.2.1")
    with override_settings(RATELIMITS={"EXEMPT": asks_the_database}):
        counted = Counted(Caller(None, "192.0.2.1", only_address=True))
        assert await acaller_of(request) == counted
        await User.objects.acreate(username="ann")
        assert await acaller_of(request) == counted._replace(exempt=True)


@pytest.mark.parametrize("missing", sorted(PREFLIGHT))
async def test_other_options_requests_are_charged(missing: str) -> None:
    headers = {name: value for name, value in PREFLIGHT.items() if name != missing}
    request = factory.options("/", headers={**headers, "x-tenant": "acme"})
    with override_settings(RATELIMITS={"TENANT": by_header}):
        assert (await both(request)).caller.tenant == "acme"


async def test_at_the_outermost_door_only_the_address_counts() -> None:
    request = factory.get("/", headers={"x-tenant": "acme"}, REMOTE_ADDR="192.0.2.1")
    with override_settings(RATELIMITS={"TENANT": by_header}):
        expected = Counted(Caller(None, "192.0.2.1", only_address=True))
        assert at_address(request) == expected
        assert await aat_address(request) == expected


async def test_exempt_by_user_before_there_is_a_user() -> None:
    """The middleware stands outside of Django's authentication."""
    with override_settings(RATELIMITS={"EXEMPT": is_staff}):
        assert at_address(factory.get("/")).exempt is False
        assert (await aat_address(factory.get("/"))).exempt is False
        preflight = factory.options("/", headers=PREFLIGHT)
        assert (await both(preflight)).exempt is False


@pytest.mark.parametrize(("user", "expected"), [(User(is_staff=True), True), (User(), False)])
def test_exempt_by_user_once_there_is_one(user: User, expected: bool) -> None:
    request = factory.get("/")
    request.user = user
    with override_settings(RATELIMITS={"EXEMPT": is_staff}):
        assert at_address(request).exempt is expected


def test_faults_of_the_projects_own_are_not_hidden() -> None:
    request = factory.get("/")
    with override_settings(RATELIMITS={"EXEMPT": fails}):
        with pytest.raises(AttributeError):
            caller_of(request)
        request.user = AnonymousUser()
        with pytest.raises(AttributeError):
            at_address(request)
