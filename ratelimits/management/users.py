"""Who a command acts for, in the history of Django's admin."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.management.base import CommandError
from django.utils.translation import gettext


def user_of(name: str | None, returncode: int) -> Any:
    """The user that --user names, None without it. Raises CommandError if there is none."""
    if name is None:
        return None
    if not apps.is_installed("django.contrib.admin"):
        told = gettext("The history is the admin's, which is not installed.")
        raise CommandError(told, returncode=returncode)
    model: Any = get_user_model()
    try:
        return model._default_manager.get_by_natural_key(name)
    except model.DoesNotExist as error:
        told = gettext("There is no user “%s”.") % name
        raise CommandError(told, returncode=returncode) from error
