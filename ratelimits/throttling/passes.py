"""What the throttles of one view tell each other of one request.

DRF asks all throttles of a view, also after one has refused; and it counts a request anew each
time that it comes by, as the same one does in tests, or where a view calls another.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from ratelimits.effects import Flow, drive
from ratelimits.flow import give_back
from ratelimits.limits import Decision
from ratelimits.requests import counted

# Kept with DRF's request, of which each view makes its own.
PASS, REFUSED = "_ratelimits_pass", "_ratelimits_refused"
UNDECIDED = "_ratelimits_undecided"


class Pass:
    """One request on its way through the throttles of one view, each of which it meets once."""

    __slots__ = ("_met", "names")

    def __init__(self) -> None:
        self._met: set[Hashable] = set()
        # Of the buckets that it takes from: whose, and of which limit.
        self.names: list[tuple[str, str]] = []

    def meets(self, throttle: Hashable) -> bool:
        """Whether this is still the same pass."""
        if throttle in self._met:
            return False
        self._met.add(throttle)
        return True

    def name(self, subject: str, ident: str) -> str:
        """What a bucket is found by, also if another throttle of this pass has that already.

        The limits of throttles with one cache key may differ: each has to be counted.
        """
        place, candidate = 1, ident
        while (subject, candidate) in self.names:
            place += 1
            candidate = f"{ident}:{place}"
        self.names.append((subject, candidate))
        return candidate


def pass_of(request: Any, throttle: Hashable) -> Pass:
    """The pass in which a request meets a throttle, which is known by what tells it apart."""
    ledger, own = counted(request), vars(request)
    found = own.get(PASS)
    if isinstance(found, Pass) and found is ledger.passing and found.meets(throttle):
        return found
    if ledger.passing is not None:
        ledger.anew(ledger.passing.names)
    if found is not None:
        own.pop(REFUSED, None)
    made = own[PASS] = ledger.passing = Pass()
    made.meets(throttle)
    return made


def note_refused(request: Any) -> None:
    """A throttle of ours has refused it, at this view."""
    vars(request)[REFUSED] = True


def ask(
    request: Any,
    peek: Callable[[], Flow[Decision]],
    take: Callable[[], Flow[Decision]],
    at: int | None = None,
    undecided: bool = False,
) -> Decision:
    """Take, unless an earlier throttle has refused: then nothing is to be taken any more.

    `at` is the time in microseconds, None for that of the store. An undecided throttle may let
    pass who is refused; see undecided.py.
    """
    let_pass(request)
    ledger = counted(request)
    ledger.now, ledger.undecided = at, undecided
    try:
        return drive(_refused(request, peek, take) if REFUSED in vars(request) else take())
    finally:
        ledger.now, ledger.undecided = None, False


def _refused(
    request: Any, peek: Callable[[], Flow[Decision]], take: Callable[[], Flow[Decision]]
) -> Flow[Decision]:
    decision = yield from peek()
    if not decision.allowed:
        # To be told of with the refusal that there is.
        decision = yield from take()
        if decision.allowed:
            yield from give_back(request, Decision())
    return decision


def let_pass(request: Any) -> None:
    """Whoever was undecided about a request has let it pass."""
    found = vars(request).pop(UNDECIDED, None)
    if found is not None:
        found.let_pass()
