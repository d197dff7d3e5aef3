"""Which mode is in force, and a form to switch it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from ratelimits.admin.modes import SwitchForm
from ratelimits.admin.pages import PagesAdmin
from ratelimits.models import ModeSwitch
from ratelimits.switching import ModeNow, mode_now


@dataclass(frozen=True)
class Mode:
    """What the user may not do or see has no form, or no address."""

    now: ModeNow
    form: SwitchForm | None
    switch_url: str
    history_url: str


def look(request: HttpRequest, admin: PagesAdmin[Any]) -> Mode:
    """See Panel."""
    switches = admin.admin_site._registry.get(ModeSwitch)
    may_switch = switches is not None and switches.has_add_permission(request)
    may_look = switches is not None and switches.has_view_permission(request)
    return Mode(
        mode_now(),
        SwitchForm(auto_id="ratelimits_mode_%s") if may_switch else None,
        _url("add", admin) if may_switch else "",
        _url("changelist", admin) if may_look else "",
    )


def _url(page: str, admin: PagesAdmin[Any]) -> str:
    return reverse(f"admin:ratelimits_modeswitch_{page}", current_app=admin.admin_site.name)
