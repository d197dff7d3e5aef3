from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ratelimits.models import ModeSwitch
from ratelimits.switching import mode_now, spread

from .base import ModelAdmin

if TYPE_CHECKING:
    SwitchModelForm = forms.ModelForm[ModeSwitch]
else:
    # Django's own has no type parameters when the program runs.
    SwitchModelForm = forms.ModelForm

PERMISSION = "ratelimits.switch_mode"
TIMES = {
    900: _("15 minutes"),
    1800: _("30 minutes"),
    3600: _("1 hour"),
    4 * 3600: _("4 hours"),
    12 * 3600: _("12 hours"),
    86400: _("24 hours"),
}


class SwitchForm(SwitchModelForm):
    """Every mode but the settings' own ends by itself, after one of these times."""

    seconds = forms.TypedChoiceField(
        label=_("for"),
        coerce=int,
        choices=list(TIMES.items()),
        initial=1800,
        help_text=_("Then it ends by itself, in every process."),
    )
    reason = forms.CharField(
        label=_("reason"),
        max_length=200,
        help_text=ModeSwitch._meta.get_field("reason").help_text,
        widget=forms.TextInput({"size": 50}),
    )

    class Meta:
        model = ModeSwitch
        fields = ["mode", "seconds", "reason"]

    def _post_clean(self) -> None:
        # Before the model looks at the whole, which it can't without an end.
        if not self.errors:
            self.instance.mode = self.cleaned_data["mode"]
            self.instance.until = self.instance.end_of(self.cleaned_data["seconds"])
            super()._post_clean()  # type: ignore[misc]


@admin.register(ModeSwitch)
class ModeSwitchAdmin(ModelAdmin[ModeSwitch]):
    """To switch is to add a row, and those that are there are history."""

    form = SwitchForm
    fields = ["mode", "seconds", "reason"]
    list_display = ["mode", "since", "until", "by", "reason"]
    list_filter = ["mode"]
    search_fields = ["by", "reason"]
    date_hierarchy = "since"

    def has_add_permission(self, request: HttpRequest) -> bool:
        return _may_switch(request.user)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_view_permission(request, obj) or _may_switch(request.user)

    def get_fields(self, request: HttpRequest, obj: ModeSwitch | None = None) -> list[Any]:
        return list(self.fields or []) if obj is None else self.list_display

    def get_form(
        self, request: HttpRequest, obj: ModeSwitch | None = None, change: bool = False, **kw: Any
    ) -> type[forms.ModelForm[ModeSwitch]]:
        if obj is not None:
            # History has no form, whose fields it would lack.
            kw["form"] = forms.ModelForm
        return super().get_form(request, obj, change, **kw)

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        context = {
            "title": gettext("Switch the mode of all limits"),
            "now": mode_now(),
            "show_save_and_add_another": False,
            "show_save_and_continue": False,
        }
        response = super().add_view(request, form_url, {**context, **(extra_context or {})})
        # Only now, when it is committed, the store knows of it.
        switched = request.method == "POST" and isinstance(response, HttpResponseRedirect)
        if switched and (late := spread()):
            messages.warning(request, late)
        return response

    def save_model(self, request: HttpRequest, obj: ModeSwitch, form: Any, change: bool) -> None:
        obj.by = request.user.get_username()
        super().save_model(request, obj, form, change)

    def response_add(
        self, request: HttpRequest, obj: ModeSwitch, post_url_continue: str | None = None
    ) -> HttpResponse:
        if "_dashboard" in request.POST:
            messages.success(request, str(obj))
            url = reverse("admin:ratelimits_dashboard", current_app=self.admin_site.name)
            return HttpResponseRedirect(url)
        return super().response_add(request, obj, post_url_continue)


def _may_switch(user: Any) -> bool:
    return bool(user.is_active and user.has_perm(PERMISSION))
