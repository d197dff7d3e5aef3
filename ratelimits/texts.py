"""Django's translations, for what must also have words before the apps are ready.

A limit in code that makes no sense is told where it is written, when nobody speaks a language yet.
"""

from __future__ import annotations

from django.apps import apps
from django.utils import translation


def gettext(message: str) -> str:
    return translation.gettext(message) if apps.ready else message


def ngettext(singular: str, plural: str, number: int) -> str:
    if apps.ready:
        return translation.ngettext(singular, plural, number)
    return singular if number == 1 else plural
