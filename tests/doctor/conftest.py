from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from ratelimits import stores
from ratelimits.exceptions import InvalidStore
from ratelimits.stores.base import Store
from ratelimits.stores.breaker import Breaker
from tests.conformance.conftest import really_connecting  # noqa: F401
from tests.fresh import fresh, on_redis  # noqa: F401


@pytest.fixture(autouse=True)
def _closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever stores the settings of a test lead to, their connections end with it."""
    made: list[Store] = []
    fitting = stores.fitting

    def noted(*args: Any) -> Store:
        made.append(fitting(*args))
        return made[-1]

    monkeypatch.setattr(stores, "fitting", noted)
    # A probe would connect again after the end.
    monkeypatch.setattr(Breaker, "_watch", lambda breaker: None)
    yield
    for store in made:
        with suppress(InvalidStore):
            store.close()
