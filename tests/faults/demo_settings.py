"""The demo's settings, with those that a test asks for, and as impatient as in production."""

from __future__ import annotations

import json
import os

from demo_project.settings import *  # noqa: F403
from demo_project.settings import RATELIMITS as DEMO

RATELIMITS = {**DEMO, "STORE_TIMEOUT": 0.05, **json.loads(os.environ["DEMO_RATELIMITS"])}
