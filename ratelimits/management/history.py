"""Who a command acts for, in the history of Django's admin."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.management.base import CommandError
from django.utils.translation import gettext

from ratelimits.rows import write_alias


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


def enter(user: Any, row: Any, flag: str, message: str) -> None:
    """Write into the history of a row: "ADDITION" or "CHANGE", and what was done.

    What was done to a row that is not saved is in that of all that the user did.
    """
    # Only there where the admin is installed, without which nobody is named.
    from django.contrib.admin import models
    from django.contrib.contenttypes.models import ContentType

    alias = write_alias()
    types = ContentType.objects.db_manager(alias)
    models.LogEntry.objects.using(alias).create(
        user_id=user.pk,
        content_type=types.get_for_model(row, for_concrete_model=False),
        object_id=None if row.pk is None else str(row.pk),
        object_repr=str(row)[:200],
        action_flag=getattr(models, flag),
        change_message=message,
    )
