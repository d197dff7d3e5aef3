"""From a request to who pays for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from inspect import isawaitable
from typing import Any, TypeVar

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from .conf import conf, resolve
from .effects import given
from .keys import digest

Resolver = Callable[[Any], Any]
R = TypeVar("R", bound=Resolver)


def resolvers() -> tuple[Resolver, ...]:
    """The chain of the setting TENANT."""
    setting = conf.TENANT
    return _chain((setting,) if isinstance(setting, str) or callable(setting) else tuple(setting))


@lru_cache(maxsize=64)
def _chain(entries: tuple[Any, ...]) -> tuple[Resolver, ...]:
    return tuple(resolver for entry in entries if (resolver := resolve(entry)) is not None)


def tenant_of(request: Any) -> str | None:
    """The tenant's key as the first resolver that answers says; None: anonymous."""
    for resolver in resolvers():
        # What an async one gives has no meaning as text, and differs each time.
        key = _key(given(resolver(request)))
        if key is not None:
            return key
    return None


async def atenant_of(request: Any) -> str | None:
    """See tenant_of(). Resolvers may read the database, so plain ones run in a thread."""
    for resolver in resolvers():
        if is_async(resolver):
            value = await resolver(request)
        else:
            value = await sync_to_async(resolver, thread_sensitive=True)(request)
            value = await value if isawaitable(value) else value
        key = _key(value)
        if key is not None:
            return key
    return None


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it gives a coroutine; also for an object with an async __call__."""
    call = getattr(function, "__call__", None)  # noqa: B004 (it is not asked if it is callable)
    return iscoroutinefunction(function) or iscoroutinefunction(call)


def _key(value: Any) -> str | None:
    # False is how `user.is_authenticated and ...` ends for those who are not.
    return None if value is None or value == "" or value is False else str(value)


def _makes(is_one: Callable[[str], bool], example: str) -> Callable[[R], R]:
    """Tells which keys a resolver can make."""

    def mark(resolver: R) -> R:
        vars(resolver).update(makes=is_one, example=example)
        return resolver

    return mark


def is_possible(key: str) -> bool:
    """Whether the chain could make a key like this; of a project's own resolvers nobody knows."""
    shapes = [getattr(resolver, "makes", None) for resolver in resolvers()]
    return any(is_one is None or is_one(key) for is_one in shapes)


def examples() -> list[str]:
    """Keys like those that the chain makes, as far as that is known."""
    found = (getattr(resolver, "example", "") for resolver in resolvers())
    return [example for example in found if example]


def _is_users(key: str) -> bool:
    prefix, _, pk = key.partition(":")
    try:
        return prefix == "user" and get_user_model()._meta.pk.to_python(pk) is not None
    except ValidationError:
        return False


@_makes(_is_users, "user:7")
def by_user(request: Any) -> str | None:
    """`user:<pk>` of the authenticated user."""
    user = getattr(request, "user", None)
    if user is None or not getattr(user, "is_authenticated", False):
        return None
    # A user without a row, as stateless authentication makes them, is nobody in particular.
    pk = getattr(user, "pk", None)
    return None if pk is None else f"user:{pk}"


@_makes(lambda key: key.startswith("auth:"), "auth:7")
def by_auth(request: Any) -> str | None:
    """`auth:...` of DRF's request.auth: a token's row, or the subject of its claims.

    What is secret itself goes in as a digest. Claims without a subject, and objects of other
    kinds, mean the next resolver: they may differ from request to request.
    """
    auth = getattr(request, "auth", None)
    subject = _claim(auth)
    if subject:
        return f"auth:{subject}"
    pk = auth if isinstance(auth, str) else getattr(auth, "pk", None)
    if pk is None or pk == "":
        return None
    # The primary key of DRF's own tokens is the secret.
    is_secret = pk is auth or pk == getattr(auth, "key", None)
    return f"auth:{digest('auth', str(pk)) if is_secret else pk}"


def _claim(auth: Any) -> Any:
    """The subject of a token that carries claims, such as a JWT."""
    claims = getattr(auth, "payload", auth)
    if not isinstance(claims, Mapping):
        return None
    return claims.get("sub") or claims.get("user_id")


def attribute(path: str, prefix: str = "") -> Resolver:
    """A resolver that follows a path of attributes, such as `user.organization_id`.

    A step that is missing, None or empty, and a user who is not authenticated, mean the next
    resolver.
    """
    steps = path.split(".")

    @_makes(lambda key: key.startswith(prefix), f"{prefix}7" if prefix else "")
    def by_attribute(request: Any) -> str | None:
        value = request
        for step in steps:
            value = getattr(value, step, None)
            if value is None or value == "" or getattr(value, "is_authenticated", True) is False:
                return None
        return f"{prefix}{value}"

    return by_attribute


def api_key(header: str, lookup: str | Callable[[str], Any]) -> Resolver:
    """A resolver for a credential in a header, such as `X-API-Key`.

    `lookup(credential)` verifies it and gives the tenant's key, or None: then the caller
    counts as anonymous, by address, so that made-up credentials are no way around a limit.
    """
    name = "HTTP_" + header.upper().replace("-", "_")

    def by_api_key(request: Any) -> Any:
        credential = request.META.get(name)
        find = resolve(lookup)
        return find(credential) if credential and find else None

    vars(by_api_key).update(header=header)
    return by_api_key


def is_exempt(request: HttpRequest) -> bool:
    """Whether the setting EXEMPT says so. A tenant with own limits may be counted even so."""
    exempt = conf.imported("EXEMPT")
    return bool(exempt and given(exempt(request)))


__all__: Sequence[str] = [
    "api_key",
    "atenant_of",
    "attribute",
    "by_auth",
    "by_user",
    "examples",
    "is_exempt",
    "is_possible",
    "tenant_of",
]
