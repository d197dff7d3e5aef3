from __future__ import annotations

from datetime import datetime, timedelta

from django.core.exceptions import ValidationError
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ratelimits.modes import LONGEST, MODES, Switch

from .choices import SwitchTo
from .managers import PlansQuerySet

_SwitchRows = models.Manager.from_queryset(PlansQuerySet)


class SwitchManager(_SwitchRows["ModeSwitch"]):
    def switch(self, mode: str, seconds: int, *, by: str = "", reason: str = "") -> ModeSwitch:
        """Switch all limits to a mode, above the setting MODE, for so many seconds.

        `settings` ends what is in force. Raises ValidationError for another mode or duration.
        """
        row = self.model(mode=mode, by=by, reason=reason)
        row.until = row.end_of(seconds)
        row.full_clean()
        row.save(using=self._db, force_insert=True)
        return row


class ModeSwitch(models.Model):
    """One switch of the mode of all limits. The last row counts, until it ends; all are history."""

    mode = models.CharField(_("mode"), max_length=10, choices=SwitchTo)
    since = models.DateTimeField(_("since"), default=timezone.now, editable=False)
    until = models.DateTimeField(_("until"), editable=False)
    by = models.CharField(_("by"), max_length=150, blank=True, default="", editable=False)
    reason = models.CharField(
        _("reason"),
        max_length=200,
        blank=True,
        default="",
        help_text=_("For those who come after you: what happened, and what is to be done."),
    )

    objects = SwitchManager()

    class Meta:
        verbose_name = _("switch of the mode")
        verbose_name_plural = _("switches of the mode")
        ordering = ["-pk"]
        base_manager_name = "objects"
        # Nobody edits history; to switch is not to add a row like any other.
        default_permissions = ("view",)
        permissions = [("switch_mode", _("Can switch the mode of all limits"))]

    def __str__(self) -> str:
        if self.mode == SwitchTo.SETTINGS:
            text = gettext("The mode of all limits is as in the settings again.")
        else:
            text = gettext("The mode of all limits is “%(mode)s” until %(until)s.") % {
                "mode": self.mode,
                "until": self.local_end.isoformat(" ", "seconds"),
            }
        return " ".join(filter(None, [text, self.said]))

    @property
    def local_end(self) -> datetime:
        """`until` in the time zone of whoever looks."""
        return timezone.localtime(self.until) if timezone.is_aware(self.until) else self.until

    @property
    def said(self) -> str:
        """Who did it, and why."""
        who = gettext("Switched by %(by)s.") % {"by": self.by} if self.by else ""
        return " ".join(filter(None, [who, self.reason]))

    def clean(self) -> None:
        super().clean()
        if not self.is_ended_at_once and not self.since < self.until <= self.end_of(LONGEST):
            raise ValidationError(gettext("A mode is switched to for a day at most."))

    @property
    def is_ended_at_once(self) -> bool:
        return self.mode == SwitchTo.SETTINGS

    def end_of(self, seconds: int) -> datetime:
        """When a switch for so many seconds ends: a whole second, never too early."""
        if self.is_ended_at_once or seconds < 1:
            return self.since
        return (self.since + timedelta(seconds=seconds, microseconds=999_999)).replace(
            microsecond=0
        )

    @property
    def switch(self) -> Switch | None:
        """What is in force by this row now. However it was written, never for longer than a day."""
        until = min(self.until, self.end_of(LONGEST))
        switch = Switch(self.mode, int(until.timestamp()))
        return None if self.mode not in MODES or switch.has_ended else switch
