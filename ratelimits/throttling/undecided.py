"""Throttles of projects that may let pass whom ours has refused.

So do those that only log for now, or that know customers whom nothing limits. They call our
`allow_request` in one of their own, and it is theirs that has the last word. DRF asks all throttles
of a view, and then those that refuse how long to wait: who is asked that has refused.
"""

from __future__ import annotations

from typing import Any

from ratelimits.effects import drive
from ratelimits.flow import give_back
from ratelimits.limits import Decision
from ratelimits.requests import counted, plain

from .passes import UNDECIDED, let_pass, note_refused
from .refusing import refuse

WAIT = "wait"


class Undecided:
    """Stands in for the `wait` of one throttle that has refused a request, so far.

    Until then nothing is given back for it, since the other throttles would not count then.
    """

    def __init__(
        self,
        throttle: Any,
        request: Any,
        at: int | None,
        name: tuple[str, str],
        before: Decision | None,
    ) -> None:
        """`name` is that of its bucket; `before` is what was decided by the throttles before."""
        self._throttle, self._request, self._at = throttle, request, at
        self._name, self._before = name, before or Decision()
        self._view: Any = None
        vars(throttle)[WAIT] = vars(request)[UNDECIDED] = self

    def stand_at(self, view: Any) -> None:
        """Let the view know, whoever refuses there."""
        self._view, usual = view, view.throttled

        def throttled(request: Any, wait: float | None) -> None:
            # Of all that refuse the wait is known by now.
            let_pass(request)
            usual(request, wait)

        view.throttled = throttled

    def __call__(self) -> float | None:
        """It has refused. Gives what the throttle says to wait."""
        forget_wait(self._throttle)
        if vars(self._request).get(UNDECIDED) is self:
            del vars(self._request)[UNDECIDED]
            self._refuse()
        wait: float | None = self._throttle.wait()
        return wait

    def _refuse(self) -> None:
        request, ledger = self._request, counted(self._request)
        note_refused(request)
        ledger.now = self._at
        decision = self._throttle.decision = drive(give_back(request, self._throttle.decision))
        ledger.now = None
        plain(request).ratelimit = ledger.everything(decision)  # type: ignore[attr-defined]
        if self._view is not None:
            refuse(self._view, decision)

    def let_pass(self) -> None:
        """It has not: nothing is told of it, and the throttles that follow count."""
        ledger = counted(self._request)
        ledger.anew([self._name])
        told = ledger.everything(self._before)
        plain(self._request).ratelimit = told  # type: ignore[attr-defined]


def forget_wait(throttle: Any) -> None:
    """Let a throttle speak for itself again."""
    if isinstance(vars(throttle).get(WAIT), Undecided):
        del vars(throttle)[WAIT]
