from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class RateLimitsConfig(AppConfig):
    name = "ratelimits"
    verbose_name = _("Rate limits")
    # Named here, so that a project's own default never asks for a migration of this app.
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from . import checks, receivers

        checks.register_all()
        receivers.connect()
