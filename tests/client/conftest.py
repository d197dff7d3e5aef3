from __future__ import annotations

from tests.client.clients import async_caller, caller, session  # noqa: F401 (fixtures)
from tests.client.turnstile import api, gate  # noqa: F401 (fixtures)
from tests.client.vendor import vendor  # noqa: F401 (a fixture)
