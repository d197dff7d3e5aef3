"""What happens when upstreams are edited: every process hears of it with its next call."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from ratelimits.edits import publish_later, set_versions

from .upstreams import forget, version_key


@dataclass(eq=False)
class UpstreamEdit:
    """The upstreams by their slugs."""

    slugs: tuple[str, ...]

    def publish(self) -> None:
        """Tell every process. They read anew before another call leaves."""
        versions = {slug: secrets.token_urlsafe(6) for slug in self.slugs}
        told = set_versions({version_key(slug): version for slug, version in versions.items()})
        for slug, version in versions.items():
            forget(slug, version)
        if not told:
            publish_later(self)
