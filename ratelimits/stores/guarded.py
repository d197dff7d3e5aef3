"""A store whose faults are boring: nothing waits for it twice, and nothing fails with it."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from ratelimits.algorithms import Operation
from ratelimits.conf import conf
from ratelimits.exceptions import PartUnavailable, StoreBusy, StoreError, StoreUnavailable
from ratelimits.limits import Limit
from ratelimits.logs import logger, once
from ratelimits.rates import Rate
from ratelimits.tallies import Fault, faults

from .base import Answer, Group, Slot, Store
from .breaker import Breaker
from .charging import Charging, may_be_done
from .levels import Levels
from .local import LocalStore
from .memory import MemoryStore
from .processes import Processes
from .refusals import Refusal, Refusals, monotonic

T = TypeVar("T")

# Things to do when the store is back: the last so many.
MOST = 1000

# What a probe takes from. Never empty, so that a probe always has something to write: a server
# that can be read only, or is full, is as good as away.
PROBE = Slot(Limit("probe", Rate(1_000_000, 1)), "probe")


class GuardedStore(Store):
    """Asks a store while it answers, and does as STORE_FAILURE says while it does not.

    A limit may say otherwise for itself. "local" counts in this process's memory.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.refusals = None if isinstance(store, MemoryStore) else Refusals()
        self.processes = Processes(store.count_processes)
        self.levels = Levels()
        self.charging = Charging(store, self.levels, self._local, self._hear)
        self.breaker = Breaker(self._probe, self._is_back)
        # One for each: a group keeps the store that made something of it.
        self._probed = Group((PROBE,))
        self._once_back: deque[Callable[[], None]] = deque(maxlen=MOST)
        # There are few threads for async callers: who waits for one finds the store gone.
        store.before = self.breaker.check  # type: ignore[method-assign]
        store.when_back(self.charging.soon)
        self._locals: dict[int, LocalStore] = {}

    @property
    def thread_sensitive(self) -> bool:
        return self.store.thread_sensitive

    def run(
        self, operation: Operation, group: Group, costs: Sequence[int], now: int | None = None
    ) -> Answer:
        known = self._known(operation, group, costs, now)
        if known is not None:
            return known
        sent = monotonic()
        try:
            self.breaker.check()
            answer = self.store.run(operation, group, costs, now)
        except Exception as error:
            return self._without(operation, group, costs, now, self._hear(error))
        finally:
            self._counted(operation, group)
        return self._learnt(operation, group, costs, now, answer, sent)

    async def arun(
        self, operation: Operation, group: Group, costs: Sequence[int], now: int | None = None
    ) -> Answer:
        """See run()."""
        known = self._known(operation, group, costs, now)
        if known is not None:
            return known
        sent = monotonic()
        try:
            self.breaker.check()
            answer = await self.store.arun(operation, group, costs, now)
        except Exception as error:
            return self._without(operation, group, costs, now, self._hear(error))
        finally:
            self._counted(operation, group)
        return self._learnt(operation, group, costs, now, answer, sent)

    def _known(
        self, operation: Operation, group: Group, costs: Sequence[int], now: int | None
    ) -> Answer | None:
        # Most callers were not refused; and not with a clock of the caller's, which may be frozen.
        if Refusal not in group.prepared or self.refusals is None or now is not None:
            return None
        return self.refusals.known(operation, group, costs)

    def _counted(self, operation: Operation, group: Group) -> None:
        if self.refusals is not None:
            self.refusals.counted(operation, group)

    def _learnt(
        self,
        operation: Operation,
        group: Group,
        costs: Sequence[int],
        now: int | None,
        answer: Answer,
        sent: int,
    ) -> Answer:
        if self.refusals is not None:
            self.levels.learn(group, answer, sent)
            if sent >= self.processes.due and not self.thread_sensitive:
                self.processes.start(sent)
            if not answer.allowed and now is None and operation is Operation.TAKE:
                self.refusals.learn(group, costs, answer, sent)
        return answer

    def versions(self, keys: Sequence[str]) -> tuple[str, ...]:
        return self._asked(lambda: self.store.versions(keys))

    def set_versions(self, versions: Mapping[str, str], seconds: int) -> None:
        self._asked(lambda: self.store.set_versions(versions, seconds))

    def count_processes(self, ident: str, seconds: int) -> int:
        return self._asked(lambda: self.store.count_processes(ident, seconds))

    def reset(self, group: Group, subjects: Sequence[str] = ()) -> None:
        names = {*subjects, *group.subjects}
        self._local().reset(group, subjects)
        self.levels.forget(names)
        try:
            self._asked(lambda: self.store.reset(group, subjects))
        finally:
            if self.refusals is not None:
                self.refusals.returned(names)

    def paced(self, ask: Callable[[], T]) -> T:
        """Ask for what calls to others wait for. Their processes are counted, too."""
        now = monotonic()
        if self.refusals is not None and now >= self.processes.due and not self.thread_sensitive:
            self.processes.start(now)
        return self._asked(ask)

    def _asked(self, ask: Callable[[], T]) -> T:
        self.breaker.check()
        try:
            return ask()
        except Exception as error:
            told = self._hear(error)
            if told is error:
                raise
            raise told from error

    def _hear(self, error: Exception) -> StoreUnavailable | StoreError:
        """What a fault means for the calls that follow. The error to go on with."""
        faults.note(_kind_of(error))
        if isinstance(error, PartUnavailable):
            # Its own breaker has said so, and looks after it.
            pass
        elif isinstance(error, StoreBusy):
            # One call came too late. The store is there, and the next one may be in time.
            once.warning(str(error))
        elif isinstance(error, StoreUnavailable):
            self.breaker.trip(error)
        elif isinstance(error, StoreError):
            logger.error("%s", error)
        else:
            # Nothing that a store or its client gets wrong is the view's affair.
            logger.error("A bug in the store of the rate limits.", exc_info=error)
            return StoreError(repr(error))
        return error

    def once_back(self, then: Callable[[], None]) -> None:
        """See Store.once_back()."""
        if self.breaker.is_open:
            self._once_back.append(then)

    def stop(self) -> None:
        """The store was replaced, as in tests: do not look for it, nor anything when it is back."""
        self.breaker.stop()
        self.charging.stop()
        self._once_back.clear()

    def _is_back(self) -> None:
        self.charging.soon()
        # What fails again asks for another time.
        for _ in range(len(self._once_back)):
            self._once_back.popleft()()

    def _probe(self) -> None:
        # One that is busy is there.
        with suppress(StoreBusy):
            self.store.run(Operation.CHARGE, self._probed, [1])
        self.charging.begin()

    def _local(self) -> LocalStore:
        """What this process counts by itself. A fork owes nothing for its parent."""
        pid = os.getpid()
        found = self._locals.get(pid)
        return found if found is not None else self._locals.setdefault(pid, LocalStore(self.levels))

    def _without(
        self,
        operation: Operation,
        group: Group,
        costs: Sequence[int],
        now: int | None,
        error: StoreUnavailable | StoreError,
    ) -> Answer:
        """The answer without the store. Limits that are let pass have no state in it."""
        ways = [slot.limit.on_store_failure or conf.STORE_FAILURE for slot in group.slots]
        firm = [not slot.limit.is_shadow for slot in group.slots]
        if any(way == "deny" and holds for way, holds in zip(ways, firm, strict=True)):
            return Answer(0, False, (), (), unavailable=True, local=True)
        silent = [way != "local" for way in ways]
        at = self.levels.now() if now is None else now
        workers, done = self.processes.number, may_be_done(error)
        answer = self._local().count(operation, group, costs, at, workers, silent, done)
        if not self.breaker.is_open and not isinstance(error, StoreError):
            # It is back meanwhile, or was only too busy for this call.
            self.charging.soon()
        states = zip(answer.states, silent, strict=True)
        fitted = zip(answer.fitted, silent, strict=True)
        return answer._replace(
            states=tuple(None if hidden else state for state, hidden in states),
            fitted=tuple(fits or hidden for fits, hidden in fitted),
            local=True,
        )


def _kind_of(error: Exception) -> Fault:
    """What went wrong, for metrics."""
    if isinstance(error, PartUnavailable):
        return "part"
    if isinstance(error, StoreBusy):
        return "busy"
    if isinstance(error, StoreUnavailable):
        return "away"
    return "refused" if isinstance(error, StoreError) else "bug"
