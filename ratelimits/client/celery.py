"""Celery tasks that come again when an API that they call says "not now".

    @shared_task(base=PoliteTask)
    def push(order_id): ...                 # may raise RetryLater

Needs Celery 5.4, which this module alone imports.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from celery.contrib.django.task import DjangoTask
from celery.exceptions import Retry

from .errors import RetryLater

# The header of a message that counts how often its task was parked.
PARKED = "ratelimits-parked"


class PoliteTask(DjangoTask):  # type: ignore[misc]
    """A task that is parked when it raises RetryLater: the same task, with the same id, comes
    again later, from its start, and what it is linked to waits for it.

    Parking is no retry: `retries` stays what it is, and `max_retries` and `autoretry_for` are for
    other errors. After `max_parks` of them the error is raised as it is; it also is where there is
    no queue: if the task is called directly, or eagerly.

    `longest_park` are seconds. A broker delivers again what was not acknowledged for too long, and
    a parked task is acknowledged when it runs; so a longer wait is made of several parkings.
    """

    max_parks = 1000
    # Half of what RabbitMQ (consumer_timeout) and Amazon SQS allow, a quarter of Redis' hour.
    longest_park = 900.0
    dont_autoretry_for = (RetryLater,)

    def __new__(cls, *args: Any, **kwargs: Any) -> PoliteTask:
        # Here, since tasks with an __init__() of their own may not call any other; and around run()
        # rather than in __call__(), so that neither autoretry_for nor those who report errors of
        # tasks see that one was parked.
        task: PoliteTask = super().__new__(cls)
        task.run = _parking(task, task.run)
        return task

    def _may_park(self) -> bool:
        request = self.request
        queued = not (request.called_directly or request.is_eager)
        # A call of a task by itself looks like the queue's, but for the request below its own.
        outermost = len(self.request_stack) == 1
        return queued and outermost and _parkings(request) < self.max_parks

    def _park(self, error: RetryLater) -> Retry:
        """Send this task to its queue again, and tell Celery so by what is raised."""
        request = self.request
        wait = min(error.delay, self._longest_park())
        headers = {**(request.headers or {}), PARKED: _parkings(request) + 1}
        self.signature_from_request(request, countdown=wait, headers=headers).apply_async()
        return Retry(exc=error, when=wait)

    def _longest_park(self) -> float:
        options = self.app.conf.broker_transport_options or {}
        timeout = options.get("visibility_timeout")
        return min(self.longest_park, timeout / 2) if timeout else self.longest_park


def _parking(task: PoliteTask, run: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(run)
    def parking(*args: Any, **kwargs: Any) -> Any:
        try:
            return run(*args, **kwargs)
        except RetryLater as error:
            if not task._may_park():
                raise
            raise task._park(error) from error

    return parking


def _parkings(request: Any) -> int:
    return int((request.headers or {}).get(PARKED, 0))
