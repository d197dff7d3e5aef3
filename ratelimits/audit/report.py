"""All findings of an audit. A part that can't be looked at is a finding too."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ratelimits.doctor.findings import Finding

from . import rows, service, upstreams, usage
from .naming import _

PARTS: tuple[tuple[str, Callable[[], Iterator[Finding]]], ...] = (
    ("rows", rows.look),
    ("service", service.look),
    ("upstreams", upstreams.look),
    ("usage", usage.look),
)


def audit() -> tuple[Finding, ...]:
    """Look at everything. Never raises."""
    return tuple(finding for name, look in PARTS for finding in _looked(name, look))


def _looked(name: str, look: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    try:
        yield from look()
    except Exception as error:
        # Whatever a database, its driver, or a project's resolver does.
        yield Finding(name, "problem", _("This can't be looked at: %r") % error)
