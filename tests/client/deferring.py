"""A backend for Django's tasks that runs them when a test says so.

Django has had tasks since 6.0, and the package django-tasks has them before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import django
from django.utils import timezone

if TYPE_CHECKING or django.VERSION >= (6, 0):
    from django.tasks import task
    from django.tasks.backends.immediate import ImmediateBackend
else:
    from django_tasks import task
    from django_tasks.backends.immediate import ImmediateBackend

IMMEDIATE = ImmediateBackend.__module__ + ".ImmediateBackend"


class Later(ImmediateBackend):
    """Runs tasks when it is told to, those that are due."""

    supports_defer = True

    def __init__(self, alias: str, params: Any) -> None:
        super().__init__(alias, params)
        self.waiting: list[Any] = []

    def _execute_task(self, task_result: Any) -> None:
        self.waiting.append(task_result)

    def run_due(self) -> list[Any]:
        """Those that were run."""
        now = timezone.now()
        due = [one for one in self.waiting if (one.task.run_after or now) <= now]
        self.waiting = [one for one in self.waiting if one not in due]
        for one in due:
            super()._execute_task(one)  # type: ignore[misc]
        return due


__all__ = ["IMMEDIATE", "Later", "task"]
