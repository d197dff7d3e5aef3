"""The admin as the tests see it: where it is, what its forms post, what it says."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import path

urlpatterns = [path("admin/", admin.site.urls)]
PLANS = "/admin/ratelimits/plan/"
TENANTS = "/admin/ratelimits/tenant/"
SERVICE = "/admin/ratelimits/servicelimit/"


@pytest.fixture
def staff(client: Client) -> Client:
    """Somebody who may enter, and nothing more until allow() says so."""
    client.force_login(get_user_model().objects.create_user("staff", is_staff=True))
    return client


def allow(*names: str) -> None:
    """Give the staff user permissions, by their codenames."""
    from django.contrib.auth.models import Permission

    user = get_user_model().objects.get(username="staff")
    user.user_permissions.add(*Permission.objects.filter(codename__in=names))


def limit_data(*limits: dict[str, Any], initial: int = 0) -> dict[str, Any]:
    data: dict[str, Any] = {"limits-TOTAL_FORMS": len(limits), "limits-INITIAL_FORMS": initial}
    for number, limit in enumerate(limits):
        row = {"name": "n", "algorithm": "token_bucket", "mode": "enforce", **limit}
        data.update({f"limits-{number}-{name}": value for name, value in row.items()})
    return data


def plan_data(*limits: dict[str, Any], initial: int = 0, **values: Any) -> dict[str, Any]:
    return {"name": "Pro", "slug": "pro", **limit_data(*limits, initial=initial), **values}


def warnings_of(response: Any) -> list[str]:
    found = response.context["messages"]
    return [str(message) for message in found if message.level_tag == "warning"]


def limit_errors(response: Any) -> list[dict[str, list[str]]]:
    formset = response.context["inline_admin_formsets"][0].formset
    return [dict(errors) for errors in formset.errors]
