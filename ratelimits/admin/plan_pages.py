"""What a plan's page shows above its form: who is on it, and what can be done about that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import django
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ratelimits.conf import conf
from ratelimits.models import Plan, Tenant
from ratelimits.words import count

from .callers import Shown
from .moves import MoveForm, move, move_page, say_moved
from .previews import PreviewPanel, PreviewsAdmin
from .tenant_pages import TOOLS_MOVED

# So many tenants are named.
SHOWN = 20


@dataclass(frozen=True)
class PlanDesk:
    """All of it. What the user may not do or see has no address, or no names."""

    sentences: tuple[str, ...]
    tenants: tuple[Shown, ...]
    all_url: str
    move_url: str
    preview: PreviewPanel | None
    may_preview: bool
    after_tools: bool = django.VERSION < TOOLS_MOVED


class PlanPagesAdmin(PreviewsAdmin):
    """Shows who is on a plan, moves them to another one, and says who stands in the way."""

    change_form_template = "admin/ratelimits/plan/change_form.html"
    delete_confirmation_template = "admin/ratelimits/plan/delete_confirmation.html"

    def get_urls(self) -> list[Any]:
        return [
            self.page_path("<path:object_id>/move/", self.move_view, "move"),
            *super().get_urls(),
        ]

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        plan = context.get("original")
        if isinstance(plan, Plan) and not context.get("is_popup"):
            context = {**context, "desk": self._desk(request, plan, context)}
        return super().render_change_form(request, context, *args, **kwargs)

    def _desk(self, request: HttpRequest, plan: Plan, context: dict[str, Any]) -> PlanDesk:
        number, may_view = plan.tenants.count(), _may_view(request.user)
        may_move = number and _may_move(request.user)
        return PlanDesk(
            sentences=tuple(_who(plan, number)),
            tenants=tuple(self._some(request, plan)) if may_view else (),
            all_url=self.tenants_url(request, plan) if may_view and number > SHOWN else "",
            move_url=self.url_of("move", plan.pk) if may_move else "",
            preview=self.preview(request, context) if may_view else None,
            may_preview=may_view and self.has_change_permission(request, plan),
        )

    def _some(self, request: HttpRequest, plan: Plan) -> Iterable[Shown]:
        """The first tenants on a plan."""
        keys = plan.tenants.values_list("key", flat=True)[:SHOWN]
        return self.callers_named(request, keys).values()

    def tenants_url(self, request: HttpRequest, plan: Plan) -> str:
        """The list of those on a plan; empty without one that the user may see."""
        url = self.viewer(request).list_of(Tenant)
        return f"{url}?plan__id__exact={plan.pk}" if url else ""

    def move_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Asks where to, then moves all tenants of a plan."""
        plan = self.viewable(request, object_id)
        if not _may_move(request.user):
            raise PermissionDenied
        form = MoveForm(request.POST if request.method == "POST" else None, leaving=plan)
        back = self.url_of("change", plan.pk)
        if not form.is_valid():
            return move_page(self, request, plan.tenants.all(), form, (), back, plan)
        to = form.cleaned_data["plan"]
        number = move(request, plan.tenants.all(), to)
        text = ngettext(
            "Moved %(n)s tenant to “%(plan)s”.", "Moved %(n)s tenants to “%(plan)s”.", number
        )
        self.log_change(request, plan, text % {"n": number, "plan": to})
        say_moved(request, number, to)
        return HttpResponseRedirect(back)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> tuple[Any, Any, Any, Any]:
        """A plan that is in use is protected by its tenants: some of them are named."""
        protected: list[Any] = []
        for plan in objs:
            protected += self._protecting(request, plan)
        if not protected:
            return super().get_deleted_objects(objs, request)
        return [], {}, set(), protected

    def _protecting(self, request: HttpRequest, plan: Plan) -> Sequence[SafeString | str]:
        number = plan.tenants.count()
        if number and not _may_view(request.user):
            text = ngettext("%(number)s tenant", "%(number)s tenants", number)
            return [text % {"number": count(number)}]
        links: list[SafeString | str] = [
            format_html("{} {}", _linked(shown.url, shown.name), shown.label or "")
            for shown in self._some(request, plan)
        ]
        if number > SHOWN:
            more = _("and %(number)s more on “%(plan)s”") % {
                "number": count(number - SHOWN),
                "plan": plan,
            }
            links.append(_linked(self.tenants_url(request, plan), more))
        return links


def _linked(url: str, text: str) -> SafeString | str:
    return format_html('<a href="{}">{}</a>', url, text) if url else text


def _may_view(user: Any) -> bool:
    return bool(user.has_perm("ratelimits.view_tenant") or _may_move(user))


def _may_move(user: Any) -> bool:
    return bool(user.has_perm("ratelimits.change_tenant"))


def _who(plan: Plan, number: int) -> Iterable[str]:
    """Who has a plan."""
    yield ngettext(
        "%(number)s tenant is on this plan.", "%(number)s tenants are on this plan.", number
    ) % {"number": count(number)}
    if plan.is_default:
        others = Tenant.objects.filter(plan=None).count()
        yield ngettext(
            "It is the default plan: %(number)s tenant without a plan of its own has it too, and "
            "so has every caller who has no row.",
            "It is the default plan: %(number)s tenants without a plan of their own have it too, "
            "and so has every caller who has no row.",
            others,
        ) % {"number": count(others)}
    if plan.is_anonymous:
        yield _("Callers who are not known are counted by it, each address by itself.")
    elif plan.is_default and not Plan.objects.filter(is_anonymous=True).exists():
        yield _("Callers who are not known are counted by it too, each address by itself.")
    if conf.PLAN:
        yield _("The setting PLAN may put tenants on another plan than their rows say.")
