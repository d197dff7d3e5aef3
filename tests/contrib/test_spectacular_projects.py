"""The schemas of projects with versions, prefixes and views that are no part of them."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import include, path, re_path
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.settings import spectacular_settings
from drf_spectacular.validation import validate_schema
from rest_framework.versioning import (
    AcceptHeaderVersioning,
    NamespaceVersioning,
    URLPathVersioning,
)

from ratelimits.contrib.rest_framework import RateLimitView
from ratelimits.throttling import ScopedRateThrottle, SimpleRateThrottle
from tests.contrib.limited_api import Base, Text
from tests.contrib.test_spectacular import HOOK, doors
from tests.settings import MIDDLEWARE


class One(Base):
    throttle_scope = "one"
    versioning_class = NamespaceVersioning


class Two(One):
    throttle_scope = "two"


class ByPath(Base):
    throttle_scope = "by-path"
    versioning_class = URLPathVersioning


class ByHeader(Base):
    throttle_scope = "by-header"
    versioning_class = AcceptHeaderVersioning


class Unlimited(Base):
    throttle_classes = ()
    versioning_class = URLPathVersioning


class LeftOut(AutoSchema):
    def is_excluded(self) -> bool:
        # By what `@extend_schema(exclude=True)` goes by.
        return self.method == "GET" and self.path.startswith("/api/")


class Left(Base):
    throttle_scope = "left"
    schema = LeftOut()


class Kept(Base):
    throttle_scope = "kept"


class Missing(SimpleRateThrottle):
    scope = "missing"


class Broken(Base):
    throttle_classes = (Missing,)


class ByUser(Base):
    def get_throttles(self) -> Any:
        return [] if self.request.headers["X-Tenant"] == "acme" else super().get_throttles()


class Limits(RateLimitView):
    schema = AutoSchema()


PATTERNS = [
    path("api/v1/", include(([path("search", One.as_view())], "v1"), namespace="v1")),
    path("api/v2/", include(([path("search", Two.as_view())], "v2"), namespace="v2")),
    re_path(r"^api/(?P<version>v[12])/thing$", ByPath.as_view()),
    re_path(r"^api/(?P<version>v[12])/free$", Unlimited.as_view()),
    path("api/header", ByHeader.as_view()),
    path("api/row/<int:pk>", Left.as_view()),
    path("api/row/<str:name>", Kept.as_view()),
]
TRIMMED: dict[str, Any] = {"SCHEMA_PATH_PREFIX": "/api(/v[12])?", "SCHEMA_PATH_PREFIX_TRIM": True}


def schema(patterns: Any, version: str | None = None, **patches: Any) -> dict[str, Any]:
    spectacular_settings.apply_patches({"POSTPROCESSING_HOOKS": [HOOK], **patches})
    try:
        generator = SchemaGenerator(patterns=patterns, api_version=version)
        made: dict[str, Any] = generator.get_schema(public=True)
    finally:
        spectacular_settings.clear_patches()
    validate_schema(made)
    return made


@pytest.mark.parametrize(("version", "scope"), [("v1", "one"), ("v2", "two")])
def test_a_version_has_the_limits_of_its_own_views(version: str, scope: str) -> None:
    made = schema(PATTERNS, version)
    assert doors(made, f"/api/{version}/search") == [(scope, 1)]
    assert doors(made, f"/api/{version}/thing") == [("by-path", 1)]
    assert doors(made, "/api/header") == [("by-header", 1)]


@pytest.mark.parametrize(("version", "scope"), [("v1", "one"), ("v2", "two")])
def test_a_version_whose_prefix_is_trimmed(version: str, scope: str) -> None:
    made = schema(PATTERNS, version, **TRIMMED)
    assert doors(made, "/search") == [(scope, 1)]
    assert made["paths"]["/search"]["get"]["description"].count("Rate limited") == 1
    assert doors(made, "/thing") == [("by-path", 1)]
    assert doors(made, "/row/{name}") == [("kept", 1)]


def test_no_version_at_all() -> None:
    made = schema(PATTERNS)
    assert list(made["paths"]) == ["/api/row/{name}"]
    assert doors(made, "/api/row/{name}") == [("kept", 1)]


def test_of_two_views_of_one_name_the_one_that_is_in_the_schema() -> None:
    both = [path("api/v1/thing", Kept.as_view()), path("api/v2/thing", Base.as_view())]
    made = schema(both, **TRIMMED)
    assert doors(made, "/thing") == [("", 1)]
    assert made["paths"]["/thing"]["get"]["description"].count("Rate limited") == 1


def test_the_prefix_that_all_paths_have() -> None:
    made = schema(
        [path("api/thing", Kept.as_view()), path("api/other", Left.as_view())],
        SCHEMA_PATH_PREFIX_TRIM=True,
    )
    assert doors(made, "/thing") == [("kept", 1)]


def test_the_middleware_knows_the_version(settings: Any) -> None:
    settings.MIDDLEWARE = ["ratelimits.middleware.RateLimitMiddleware", *MIDDLEWARE]
    settings.RATELIMITS = {"PROTECT": ["/api/v2/"]}
    assert doors(schema(PATTERNS, "v1"), "/api/v1/free") is None
    assert doors(schema(PATTERNS, "v2"), "/api/v2/free") == [("", 1)]


@pytest.mark.parametrize("view", [Broken, ByUser])
def test_throttles_that_need_a_real_request_are_warned_of(view: Any, capsys: Any) -> None:
    GENERATOR_STATS.reset()
    made = schema([path("api/thing", view.as_view()), path("api/other", Kept.as_view())])
    assert doors(made, "/api/thing") is None
    assert doors(made, "/api/other") == [("kept", 1)]
    assert f"{view.__name__} GET /api/thing: Its limits" in capsys.readouterr().err


def test_scopes_that_throttles_have_themselves() -> None:
    class Idle(ScopedRateThrottle):
        """Which DRF never asks for, as long as the view has no scope."""

        scope = "idle"
        THROTTLE_RATES = {"idle": "1/m", "pinned": "1/m"}

    class Pinned(Idle):
        scope = "pinned"

        def allow_request(self, request: Any, view: Any) -> bool:
            return super(ScopedRateThrottle, self).allow_request(request, view)

    for kind, told in ((Idle, None), (Pinned, [("pinned", 1)])):
        view: Any = type("View", (Base,), {"throttle_classes": [kind]})
        assert doors(schema([path("api/thing", view.as_view())]), "/api/thing") == told


def test_names_of_ours_are_no_names_of_a_project() -> None:
    """A serializer of its own may be called LimitSerializer."""
    made = schema([path("api/limits", Limits.as_view()), path("api/kept", Kept.as_view())])
    names = set(made["components"]["schemas"])
    assert names == {"RateLimitOfCaller", "RateLimitsOfCaller", "RateLimitProblem", "Text"}
    assert Text.__name__ in names
