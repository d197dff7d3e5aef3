from __future__ import annotations

from collections.abc import Iterator

import pytest

from ratelimits.models import Upstream
from tests.demo import Demo


@pytest.fixture(scope="package")
def vendor_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The demo, which is somebody else's API here, in processes and with counts of its own."""
    demo = Demo(tmp_path_factory.mktemp("vendor"))
    yield f"http://127.0.0.1:{demo.port}"
    demo.end()


@pytest.fixture
def rows() -> None:
    """10 per second as the vendor has it, as either kind, and twice as much.

    These tests are about counting and not about the machine, on which a process may well be held
    up for a second between the gate and the network: hence the guard. And about those who wait,
    however long that takes here.
    """
    for slug, rate, kind, guard in (
        ("bucket", "10/s", "bucket", 1.2),
        ("window", "10/s", "window", 1.2),
        ("too-high", "20/s", "bucket", 0.6),
    ):
        row = Upstream.objects.create(slug=slug, guard=guard, max_wait=60)
        row.limits.create(name="calls", rate=rate, kind=kind)
