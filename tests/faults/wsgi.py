"""The demo behind a server that imports it before it forks, and that uses it before that too."""

from __future__ import annotations

from demo_project.wsgi import application
from ratelimits.limiter import take

__all__ = ["application"]

# A project may well do so as it starts: the parent's connections are then open at the fork.
take("bakery")
