from __future__ import annotations

import logging
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client, RequestFactory
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.views import APIView

from ratelimits import usage
from ratelimits.admin import finding
from ratelimits.limiter import peek, take
from ratelimits.models import Tenant
from ratelimits.tenants import api_key, attribute, is_possible
from tests.admin_site import TENANTS, limit_data
from tests.doors import make_plan

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.urls("tests.admin_site"),
    pytest.mark.usefixtures("fresh"),
]
FIND = f"{TENANTS}find/"
SECRET = "sk_live_0123456789"

by_key = api_key("X-Service-Key", lambda key: "acme" if key == SECRET else None)
by_itself = api_key("X-API-Key", lambda key: f"key:{key}")
by_organization = attribute("user.last_name", "org:")


def by_bearer(request: Any) -> str | None:
    return "acme" if request.headers.get("Authorization") == f"Bearer {SECRET}" else None


def by_failing(request: Any) -> str | None:
    raise LookupError(f"no such key {request.headers}")


class ByToken(BaseAuthentication):
    def authenticate(self, request: Any) -> Any:
        given = request.headers.get("Authorization", "")
        if not given.startswith("Token "):
            return None
        if given != f"Token {SECRET}":
            raise AuthenticationFailed
        return User.objects.get(username="ann"), None


@pytest.fixture(autouse=True)
def plan(settings: Any) -> None:
    make_plan("api 100/d")
    use(settings, "by_key")


def use(settings: Any, *names: str) -> None:
    settings.RATELIMITS = {"TENANT": [f"{__name__}.{name}" for name in names]}


def find(client: Client, **data: str) -> str:
    response = client.post(FIND, data)
    assert response.status_code == 200
    return response.content.decode()


def test_the_page_is_linked_from_the_list(admin_client: Client) -> None:
    assert f'href="{FIND}"' in admin_client.get(TENANTS).content.decode()
    assert admin_client.get(FIND).status_code == 200


def test_by_a_credential(admin_client: Client, caplog: pytest.LogCaptureFixture) -> None:
    take("acme", cost=3)
    html = find(admin_client, credential=f' "{SECRET}" \n')
    assert "This credential is of the tenant “acme”, by the header X-Service-Key." in html
    assert "97 of 100 left" in html
    assert "It has no row of its own" in html
    assert SECRET not in html
    assert SECRET not in caplog.text


@pytest.mark.parametrize("text", [f"X-Service-Key: {SECRET}", SECRET])
def test_a_credential_where_a_key_is_asked_for(admin_client: Client, text: str) -> None:
    html = find(admin_client, key=text)
    assert "This credential is of the tenant “acme”" in html
    assert SECRET not in html


@pytest.mark.parametrize(
    "text", [SECRET, f"Bearer {SECRET}", f"Authorization: Bearer {SECRET}", f"'Bearer {SECRET}'"]
)
def test_by_a_token_in_the_usual_header(admin_client: Client, settings: Any, text: str) -> None:
    use(settings, "by_bearer")
    html = find(admin_client, credential=text)
    assert "of the tenant “acme”, by the header Authorization" in html
    assert SECRET not in html


@pytest.mark.parametrize("text", [SECRET, f"Token {SECRET}"])
def test_by_what_rest_framework_authenticates(
    admin_client: Client, settings: Any, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    settings.RATELIMITS = {}
    user = User.objects.create_user("ann")
    monkeypatch.setattr(APIView, "authentication_classes", [ByToken])
    assert f"of the tenant “user:{user.pk}”" in find(admin_client, credential=text)


def test_one_that_nobody_knows(admin_client: Client) -> None:
    html = find(admin_client, credential="made-up-secret")
    assert "No resolver knows it" in html
    assert "made-up-secret" not in html


def test_one_that_is_the_key_itself(admin_client: Client, settings: Any) -> None:
    use(settings, "by_itself")
    html = find(admin_client, credential=SECRET)
    assert "makes the credential itself the tenant" in html
    assert SECRET not in html


def test_a_resolver_that_fails(
    admin_client: Client, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    use(settings, "by_failing")
    caplog.set_level(logging.DEBUG)
    html = find(admin_client, credential=SECRET)
    assert "No resolver knows it" in html
    assert "LookupError" in caplog.text
    assert SECRET not in caplog.text + html


def test_the_secret_is_in_no_history_and_no_session(admin_client: Client) -> None:
    response = admin_client.post(FIND, {"credential": SECRET})
    assert SECRET not in response.content.decode()
    assert SECRET not in str(response.request) + str(dict(admin_client.session))
    assert "credential" not in response.wsgi_request.POST
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize("field", ["key", "credential"])
def test_a_fault_shows_no_secret(
    admin_client: Client, settings: Any, monkeypatch: pytest.MonkeyPatch, field: str
) -> None:
    """Even the page for developers, with all variables of all frames."""

    def fails(*args: Any) -> None:
        raise RuntimeError("a bug")

    settings.DEBUG = True
    monkeypatch.setattr(finding, "panel_of", fails)
    admin_client.raise_request_exception = False
    response = admin_client.post(FIND, {field: SECRET})
    assert response.status_code == 500
    assert "a bug" in response.content.decode()
    assert SECRET not in response.content.decode()


@pytest.mark.parametrize("text", ["acme", "ACME Inc."])
def test_by_key_or_name(admin_client: Client, text: str) -> None:
    row = Tenant.objects.create(key="acme", name="Acme Inc.")
    html = find(admin_client, key=text)
    assert f'href="{TENANTS}{row.pk}/change/"' in html
    assert "Give it a row" not in html


@pytest.mark.parametrize("text", ["ann", "Ann@Example.com"])
def test_by_a_user(admin_client: Client, settings: Any, text: str) -> None:
    settings.RATELIMITS = {}
    user = User.objects.create_user("ann", "ann@example.com")
    html = find(admin_client, key=text)
    assert f"is counted as “user:{user.pk}”" in html


def test_a_key_that_called_is_meant_rather_than_a_user(admin_client: Client) -> None:
    user = User.objects.create_user("ann")
    take("ann")
    usage.flush()
    html = find(admin_client, key="ann")
    assert "Requests in the last hour: 1, refused: 0." in html
    assert f"user:{user.pk}" not in html


def test_a_key_that_called_is_meant_rather_than_a_name(admin_client: Client) -> None:
    """Or else whoever is looked at from the dashboard could be another customer."""
    take("bob")
    usage.flush()
    Tenant.objects.create(key="org:1", name="Bob")
    assert "<h2>bob</h2>" in find(admin_client, key="bob")


def test_a_key_is_meant_rather_than_names(admin_client: Client) -> None:
    for key in ("a", "b"):
        Tenant.objects.create(key=key, name="zed")
    row = Tenant.objects.create(key="zed")
    User.objects.create_user("zed")
    assert f'<h2><a href="{TENANTS}{row.pk}/change/">zed</a></h2>' in find(admin_client, key="zed")


def test_a_key_with_spaces_around_it(admin_client: Client) -> None:
    acme = Tenant.objects.create(key="acme")
    assert f"{TENANTS}{acme.pk}/" in find(admin_client, key=" acme ")
    take(" acme ", cost=3)
    usage.flush()
    assert "97 of 100 left" in find(admin_client, key=" acme ")
    admin_client.post(f"{FIND}add/", {"key": " acme "})
    row = Tenant.objects.get(key=" acme ")
    form = admin_client.get(f"{TENANTS}{row.pk}/change/").context["adminform"].form
    data = {**form.initial, "plan": "", "name": "Spaces", **limit_data()}
    assert admin_client.post(f"{TENANTS}{row.pk}/change/", data).status_code == 302
    row.refresh_from_db()
    assert (row.key, row.name) == (" acme ", "Spaces")


@pytest.mark.parametrize(
    ("peer", "text", "shown"),
    [
        ("192.0.2.7", " 192.0.2.7 ", "192.0.2.7"),
        ("2001:db8:1:2::5", "2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::5", "2001:db8:1:2::/64", "2001:db8:1:2::/64"),
    ],
)
def test_by_an_address(admin_client: Client, peer: str, text: str, shown: str) -> None:
    for _ in range(3):
        take(RequestFactory().get("/", REMOTE_ADDR=peer))
    usage.flush()
    html = find(admin_client, key=text)
    assert f"<h2>{shown}</h2>" in html
    assert "97 of 100 left" in html and "Requests in the last hour: 3" in html
    assert "counted by their address" in html
    assert "Give it a row" not in html and "no row of its own" not in html


def test_an_address_of_the_dashboard_leads_there(admin_client: Client) -> None:
    take(RequestFactory().get("/", REMOTE_ADDR="192.0.2.7"))
    usage.flush()
    html = admin_client.get(f"{TENANTS}dashboard/").content.decode()
    assert '<input type="hidden" name="key" value="192.0.2.7">' in html


def test_a_tenant_that_is_called_like_an_address(admin_client: Client) -> None:
    row = Tenant.objects.create(key="192.0.2.7")
    assert f"{TENANTS}{row.pk}/change/" in find(admin_client, key="192.0.2.7")


def test_a_caller_without_a_row_is_given_one(admin_client: Client) -> None:
    html = find(admin_client, key="org:7")
    assert "Give it a row" in html
    response = admin_client.post(f"{FIND}add/", {"key": "org:7"}, follow=True)
    assert "“org:7” has a row now." in response.content.decode()
    row = Tenant.objects.get(key="org:7")
    assert response.redirect_chain[-1][0] == f"{TENANTS}{row.pk}/change/"
    assert LogEntry.objects.get().is_addition()


@pytest.mark.parametrize("key", ["", "a\0", "x" * 256])
def test_no_reset_of_what_is_no_key(admin_client: Client, key: str) -> None:
    response = admin_client.post(f"{FIND}reset/", {"key": key, "post": "yes"}, follow=True)
    assert [message.level_tag for message in response.context["messages"]] == ["error"]
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize("key", ["", "a\0", "x" * 256])
def test_no_row_for_what_is_no_key(admin_client: Client, key: str) -> None:
    Tenant.objects.create(key="acme")
    response = admin_client.post(f"{FIND}add/", {"key": key}, follow=True)
    assert [message.level_tag for message in response.context["messages"]] == ["error"]
    assert Tenant.objects.count() == 1


def test_a_second_click_makes_no_second_row(admin_client: Client) -> None:
    for said in ("“org:7” has a row now.", "“org:7” has a row already."):
        response = admin_client.post(f"{FIND}add/", {"key": "org:7"}, follow=True)
        assert said in response.content.decode()
        assert response.redirect_chain[-1][0] == f"{TENANTS}{Tenant.objects.get().pk}/change/"
    assert LogEntry.objects.count() == 1


def test_a_caller_without_a_row_is_reset(admin_client: Client) -> None:
    take("org:7", cost=100)
    asked = admin_client.post(f"{FIND}reset/", {"key": "org:7"}).content.decode()
    assert "org:7" in asked
    assert not peek("org:7").allowed
    admin_client.post(f"{FIND}reset/", {"key": "org:7", "post": "yes"})
    assert peek("org:7").allowed
    entry = LogEntry.objects.get()
    assert (entry.object_repr, str(entry)) == (
        "org:7",
        "Changed “org:7” — Reset what it had used.",
    )


def test_keys_that_are_never_made_are_marked(admin_client: Client, settings: Any) -> None:
    assert "No resolver of this project" not in find(admin_client, key="org:7")
    settings.RATELIMITS = {}
    assert "No resolver of this project makes a key like this" in find(admin_client, key="org:7")


@pytest.mark.parametrize(
    ("names", "possible", "impossible"),
    [
        ("ratelimits.tenants.by_user", ["user:7"], ["user:", "user:ann", "7", "acme"]),
        ("ratelimits.tenants.by_auth", ["auth:7"], ["user:7", "auth"]),
        (f"{__name__}.by_organization", ["org:x"], ["x", "user:7"]),
        (f"{__name__}.by_key", ["acme", "user:7"], []),
    ],
)
def test_keys_as_the_resolvers_make_them(
    settings: Any, names: str, possible: list[str], impossible: list[str]
) -> None:
    settings.RATELIMITS = {"TENANT": names}
    assert all(map(is_possible, possible))
    assert not any(map(is_possible, impossible))


def test_permissions(client: Client) -> None:
    user = User.objects.create_user("staff", is_staff=True)
    client.force_login(user)

    def allow(name: str) -> None:
        user.user_permissions.add(Permission.objects.get(codename=name))

    take("org:7", cost=100)
    assert client.get(FIND).status_code == 403
    assert client.post(FIND, {"key": "org:7"}).status_code == 403
    allow("view_tenant")
    html = find(client, key="org:7")
    assert "Give it a row" not in html and "Reset what it has used" not in html
    assert client.post(f"{FIND}add/", {"key": "org:7"}).status_code == 403
    assert client.post(f"{FIND}reset/", {"key": "org:7", "post": "yes"}).status_code == 403
    assert not peek("org:7").allowed
    assert not Tenant.objects.exists()
    allow("add_tenant")
    allow("reset_tenant")
    html = find(client, key="org:7")
    assert "Give it a row" in html and "Reset what it has used" in html


def test_what_is_too_long_for_a_key_is_not_shown(admin_client: Client) -> None:
    html = find(admin_client, key="secret" * 50)
    assert "No resolver knows it" in html
    assert "secretsecret" not in html


@pytest.mark.parametrize("data", [{}, {"key": "a", "credential": "b"}])
def test_what_is_wrong_is_said(admin_client: Client, data: dict[str, str]) -> None:
    assert "errorlist" in find(admin_client, **data)


def test_only_by_post(admin_client: Client) -> None:
    assert admin_client.get(FIND, {"key": "acme"}).context["found"] is None
    for name in ("add", "reset"):
        assert admin_client.get(f"{FIND}{name}/", {"key": "acme"}).status_code == 405
