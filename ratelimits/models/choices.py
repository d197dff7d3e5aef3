from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class Algorithm(models.TextChoices):
    """How a limit counts."""

    TOKEN_BUCKET = "token_bucket", _("token bucket")
    FIXED_WINDOW = "fixed_window", _("fixed window")
    SLIDING_LOG = "sliding_log", _("sliding log")
    SLIDING_COUNTER = "sliding_counter", _("sliding counter")


class Mode(models.TextChoices):
    """What a limit does with a request that exceeds it."""

    ENFORCE = "enforce", _("enforce")
    SHADOW = "shadow", _("shadow")
    OFF = "off", _("off")


class SwitchTo(models.TextChoices):
    """What an operator can switch all limits to."""

    ENFORCE = "enforce", _("enforce")
    SHADOW = "shadow", _("shadow: count and report, refuse nothing")
    OFF = "off", _("off: count nothing")
    SETTINGS = "settings", _("as in the settings again")


class StoreFailure(models.TextChoices):
    """What a limit does while the store is away."""

    DEFAULT = "", _("as in settings")
    LOCAL = "local", _("count locally")
    ALLOW = "allow", _("allow")
    DENY = "deny", _("deny")


class Per(models.TextChoices):
    """Whose bucket a service limit is."""

    EVERYONE = "everyone", _("everyone together")
    ADDRESS = "address", _("each address")


class UpstreamKind(models.TextChoices):
    """How somebody else counts what we call."""

    BUCKET = "bucket", _("bucket that refills")
    WINDOW = "window", _("window")


class UpstreamPer(models.TextChoices):
    """Whose share of an upstream it is."""

    CREDENTIAL = "credential", _("each credential")
    TENANT = "tenant", _("each customer in whose name we call")
