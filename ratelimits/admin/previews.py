"""The button beside "Save" that says what an edit of a plan would change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ratelimits import rows
from ratelimits.limits import Limit, Owner
from ratelimits.models import Plan, PlanLimit
from ratelimits.previews import Change, Preview, preview_of
from ratelimits.words import count

from .callers import Shown, callers
from .pages import PagesAdmin
from .standing import described

BUTTON = "_preview"
# So many of those who used more are named.
SHOWN = 20


@dataclass(frozen=True)
class ChangeRow:
    """What becomes of one limit."""

    text: str
    who: str
    over: tuple[Shown, ...]
    more: int


@dataclass(frozen=True)
class PreviewPanel:
    sentence: str
    rows: tuple[ChangeRow, ...]


class PreviewsAdmin(PagesAdmin[Plan]):
    """Adds what the button needs: a form that is filled in, but not saved."""

    def get_form(
        self, request: HttpRequest, obj: Plan | None = None, change: bool = False, **kwargs: Any
    ) -> Any:
        form: Any = super().get_form(request, obj, change, **kwargs)
        return _unsaved(form) if is_asked(request) else form

    def preview(self, request: HttpRequest, context: dict[str, Any]) -> PreviewPanel | None:
        """What the edit in a form would change; None if nobody asked, or it has errors."""
        if not is_asked(request) or context.get("errors"):
            return None
        preview = preview_of(context["original"], _limits(context["inline_admin_formsets"]))
        changes = tuple(self._of_change(request, preview, change) for change in preview.changes)
        return PreviewPanel(_sentence(preview), changes)

    def _of_change(self, request: HttpRequest, preview: Preview, change: Change) -> ChangeRow:
        over = change.over or ()
        shown = tuple(self.callers_named(request, over[:SHOWN]).values())
        who = " ".join(_who(preview, change))
        return ChangeRow(_text(change), who, shown, max(0, len(over) - SHOWN))

    def callers_named(self, request: HttpRequest, keys: Iterable[str]) -> Mapping[Owner, Shown]:
        """How to show tenants, by their keys."""
        return callers((Owner("tenant", key) for key in keys), self.viewer(request))


def is_asked(request: HttpRequest) -> bool:
    return request.method == "POST" and BUTTON in request.POST


def _unsaved(form: Any) -> Any:
    class Unsaved(form):  # type: ignore[misc]
        """To the admin it is never ready to be saved, whether it has errors or not."""

        def is_valid(self) -> bool:
            super().is_valid()
            return False

    return Unsaved


def _limits(inlines: Iterable[Any]) -> Iterator[Limit]:
    """What the limits will be, those included that stay as they are."""
    for inline in inlines:
        formset = inline.formset
        if issubclass(formset.model, PlanLimit):
            forms = [form for form in formset.forms if form not in formset.deleted_forms]
            for form in forms:
                if form.instance.pk or form.has_changed():
                    limit = rows.limit_of(form.instance)
                    if limit is not None:
                        yield limit


def _sentence(preview: Preview) -> str:
    if not preview.changes:
        return _("No limit would change.")
    if not preview.known:
        return _(
            "What tenants use is unavailable: the store that holds the counts can't be reached."
        )
    told = {"tenants": count(preview.tenants), "looked_at": count(preview.looked_at)}
    if preview.looked_at < preview.tenants:
        text = _(
            "%(tenants)s tenants have this plan; looked at were the %(looked_at)s of them that "
            "called most in the last two hours."
        )
    else:
        text = ngettext(
            "%(tenants)s tenant has this plan.",
            "%(tenants)s tenants have this plan.",
            preview.tenants,
        )
    if preview.without_row:
        text += " " + _("So have callers without a row, of whom %(others)s called lately.")
    return text % {**told, "others": count(preview.without_row)}


def _text(change: Change) -> str:
    """`“requests”: 100 requests per minute becomes 60 requests per minute`."""
    told = {"name": change.name, "before": _shown(change.before), "after": _shown(change.after)}
    if change.before is None:
        return _("“%(name)s” is new: %(after)s") % told
    if change.after is None:
        return _("“%(name)s” is removed: %(before)s") % told
    return _("“%(name)s”: %(before)s becomes %(after)s") % told


def _shown(limit: Limit | None) -> str:
    if limit is None:
        return ""
    parts = [described(limit)]
    if limit.scope:
        parts.append(_("for “%(scope)s”") % {"scope": limit.scope})
    if limit.algorithm != "token_bucket":
        parts.append(str(PlanLimit(algorithm=limit.algorithm).get_algorithm_display()))
    if limit.mode != "enforce":
        parts.append(str(PlanLimit(mode=limit.mode).get_mode_display()))
    return ", ".join(parts)


def _may_refuse(limit: Limit | None) -> bool:
    return limit is not None and limit.mode != "off" and not limit.rate.is_unlimited


def _who(preview: Preview, change: Change) -> Iterator[str]:
    """Whom it concerns."""
    if change.over is None:
        yield _("Nothing counted so far what it covers.")
    elif preview.known and _may_refuse(change.after):
        number = len(change.over)
        text = ngettext(
            "%(number)s of them used more than that in a minute or an hour of the last day.",
            "%(number)s of them used more than that in a minute or an hour of the last day.",
            number,
        )
        yield text % {"number": count(number)}
    if change.own:
        text = ngettext(
            "%(number)s tenant has a limit of its own in its place, and keeps that.",
            "%(number)s tenants have limits of their own in its place, and keep those.",
            change.own,
        )
        yield text % {"number": count(change.own)}
