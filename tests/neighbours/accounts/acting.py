"""What happens at the login page of allauth. See ../test_login.py."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from ratelimits.clock import microseconds
from tests.doors import is_silent


def act(index: int) -> dict[str, Any]:
    """The statuses of attempts, while time stands still."""
    call_command("migrate", verbosity=0)
    User.objects.create_user("ada", password="right")
    with patch("ratelimits.stores.memory.microseconds", return_value=microseconds()):
        looking = [Client().get(reverse("account_login")) for _ in range(7)]
        return {
            "looking": [answer.status_code for answer in looking if is_silent(answer)],
            "one address": [attempt(f"user{number}", "192.0.2.1") for number in range(6)],
            "right, from there": attempt("ada", "192.0.2.1", "right"),
            "right": attempt("ada", "192.0.2.2", "right"),
            "one account": [attempt(name, f"198.51.100.{number}") for number, name in tries()],
        }


def tries() -> list[tuple[int, str]]:
    # One attempt at this account was right, and one from a refused address was not counted.
    return list(enumerate(["ada", "ADA", " Ada"] * 6 + ["ada"] * 2))


def attempt(name: str, address: str, password: str = "wrong") -> int:
    form = {"login": name, "password": password}
    return Client().post(reverse("account_login"), form, REMOTE_ADDR=address).status_code
