"""Asking a database that may hang, without hanging."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

from django.db import connections
from django.utils.translation import gettext as _

T = TypeVar("T")

# Seconds.
PATIENCE = 5.0


def within_patience(alias: str, ask: Callable[[], T]) -> T:
    """What is asked of a database. Raises TimeoutError if it does not answer in time.

    A thread of its own has a connection of its own, which could not see an open transaction's
    rows; and SQLite gives up by itself.
    """
    connection = connections[alias]
    if connection.vendor == "sqlite" or connection.in_atomic_block:
        return ask()
    answer: Future[T] = Future()
    arguments = (answer, ask)
    thread = Thread(target=_answer, args=arguments, name="ratelimits-doctor", daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if thread.is_alive():
        raise TimeoutError(_("no answer within %s s") % f"{PATIENCE:g}")
    return answer.result()


def _answer(answer: Future[T], ask: Callable[[], T]) -> None:
    try:
        answer.set_result(ask())
    except BaseException as error:
        answer.set_exception(error)
    finally:
        connections.close_all()
