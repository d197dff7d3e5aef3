"""Commands that a take sends, counted on the server while it is watched."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks import peers
from benchmarks.bench import SERVICE, Bench
from benchmarks.ours import FIVE, ONE, taking
from benchmarks.table import Row, exact, goal
from tests.conformance.watching import watch

TAKES = 200


def rows(bench: Bench) -> Iterator[Row]:
    for name, call in ((ONE, taking("one")), (FIVE, taking("four", SERVICE))):
        sent, inside = _commands(bench, call)
        yield _row(name, sent, inside, ("exactly", 1))
    refused, inside = _commands(bench, taking("spent"))
    yield _row("refused take, decided in the process", refused, inside)
    for peer in peers.subjects():
        yield _row(peer.name, *_commands(bench, peer.call))


def _row(name: str, sent: float, inside: float, aim: tuple[str, float] | None = None) -> Row:
    reached = goal(*aim, sent, "command") if aim else None
    measured = f"{sent:.2f} sent"
    note = f"{inside:.1f} more inside of the script" if inside else ""
    return Row(f"commands: {name}", measured, exact(sent), "one command", reached, note)


def _commands(bench: Bench, call: Callable[[], object]) -> tuple[float, float]:
    """How many a call sends, and how many a script runs for it. Warm: all callers came before."""
    for _ in range(TAKES):
        call()
    with watch(bench.server) as seen:
        for _ in range(TAKES):
            call()
    return len(seen.sent) / TAKES, len(seen.inside) / TAKES
