"""The settings in force, and what the system checks say of them."""

from __future__ import annotations

from collections.abc import Iterator

from django.conf import settings
from django.core.checks import ERROR, WARNING, run_checks
from django.utils.translation import gettext as _

from ratelimits.checks import OURS
from ratelimits.checks.base import own_settings
from ratelimits.conf import conf

from .findings import Finding, Level

# Those that decide what happens to requests when something is wrong.
SHOWN = (
    "MODE", "CACHE", "STORE_TIMEOUT", "STORE_FAILURE", "WORKERS", "LOCAL_REFUSALS", "CATALOG_TTL",
    "CLOCK",
)  # fmt: skip


def look() -> Iterator[Finding]:
    yield from _checks()
    if own_settings() is None:
        return
    value = {name: getattr(conf, name) for name in SHOWN}
    text = ", ".join(f"{name} {value!r}" for name, value in value.items())
    if conf.MODE == "enforce":
        yield Finding("settings", "ok", text, value=value)
        return
    if conf.MODE == "off":
        text = _("Nothing is counted: %s") % text
    else:
        text = _("Nobody is refused: %s") % text
    advice = _('To enforce the limits: "MODE": "enforce" in RATELIMITS.')
    yield Finding("settings", "warning", text, advice, value)


def _checks() -> Iterator[Finding]:
    """As `manage.py check --tag ratelimits`; with --deploy, unless this is for development."""
    # Databases, which may hang, are looked at with more caution elsewhere.
    deploy = not settings.DEBUG
    messages = run_checks(tags=[OURS], include_deployment_checks=deploy, databases=[])
    for message in messages:
        if message.level >= WARNING and not message.is_silenced():
            level: Level = "problem" if message.level >= ERROR else "warning"
            yield Finding(str(message.id), level, str(message.msg), str(message.hint or ""))
