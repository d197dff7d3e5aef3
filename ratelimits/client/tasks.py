"""Django's own tasks that come again when an API that they call says "not now".

    @task(takes_context=True)
    @parks
    def push(context, order_id): ...        # may raise RetryLater

So do those of the package django-tasks, which has them for Django 5.2: nothing of either is
imported here.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial, wraps
from inspect import iscoroutinefunction
from typing import Any, TypeVar, overload

from django.utils import timezone

from .errors import RetryLater

F = TypeVar("F", bound=Callable[..., Any])
# The argument that counts how often a task was parked: a task has nothing else that travels along.
PARKED = "ratelimits_parked"
# Seconds. A longer wait is made of several, since somebody may have edited the upstream by then.
LONGEST = 86400.0


@overload
def parks(function: F) -> F: ...
@overload
def parks(*, max_parks: int = ...) -> Callable[[F], F]: ...
def parks(function: Any = None, *, max_parks: int = 1000) -> Any:
    """Enqueue a task again, for when it may go on, if its function raises RetryLater.

    Goes between `@task(takes_context=True)` and the function. The run that is parked returns
    `{"parked": id}`; the id, a new one, is that of the next run, which begins from the start. The
    error is raised as it is after `max_parks` of them, and where the backend can't defer.
    """
    if function is None:
        return partial(parks, max_parks=max_parks)
    if not callable(function):
        raise TypeError("parks goes between @task(takes_context=True) and the function.")

    @wraps(function)
    def parking(context: Any, *args: Any, **kwargs: Any) -> Any:
        parked = kwargs.pop(PARKED, 0)
        try:
            return function(context, *args, **kwargs)
        except RetryLater as error:
            task = _later(context, error, parked < max_parks)
            kwargs[PARKED] = parked + 1
            return {"parked": task.enqueue(*args, **kwargs).id}

    @wraps(function)
    async def aparking(context: Any, *args: Any, **kwargs: Any) -> Any:
        parked = kwargs.pop(PARKED, 0)
        try:
            return await function(context, *args, **kwargs)
        except RetryLater as error:
            task = _later(context, error, parked < max_parks)
            kwargs[PARKED] = parked + 1
            return {"parked": (await task.aenqueue(*args, **kwargs)).id}

    return aparking if iscoroutinefunction(function) else parking


def _later(context: Any, error: RetryLater, may_park: bool) -> Any:
    """The task that is being run, to be run when its wait is over; or the error is raised."""
    # Nobody's, if the function was called by itself.
    result = getattr(context, "task_result", None)
    if not may_park or result is None or not result.task.get_backend().supports_defer:
        raise error
    wait = timedelta(seconds=min(error.delay, LONGEST))
    return result.task.using(run_after=timezone.now() + wait)
