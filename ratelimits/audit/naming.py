"""How the findings are written."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ratelimits.doctor.findings import Finding
from ratelimits.words import visible

# So many of each kind are named in the text, and in the JSON.
EXAMPLES = 5
MOST = 1000


def found(name: str, what: Sequence[str], fine: str, wrong: str, advice: str) -> Finding:
    """A finding of whatever is wrong, or that nothing is. `wrong` may have a place for how many."""
    value = {"count": len(what), "named": list(what[:MOST])}
    if not what:
        return Finding(name, "ok", fine, value=value)
    more = ", ..." if len(what) > EXAMPLES else ""
    text = f"{wrong % len(what)}: {', '.join(map(visible, what[:EXAMPLES]))}{more}"
    return Finding(name, "warning", text, advice, value)


__all__ = ["EXAMPLES", "MOST", "_", "found", "ngettext"]
