"""How the request of a page is seen, in the words of the pages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ratelimits.seeing import Role, Seen, seen

from .labels import tenant_label
from .standing import Panel, panel_of
from .viewers import Viewer


@dataclass(frozen=True)
class Hop:
    """One address on the way, and what it is taken for."""

    text: str
    role: str
    counts: bool


@dataclass(frozen=True)
class SeenPanel:
    """All that there is to tell of it."""

    hops: tuple[Hop, ...]
    sentences: tuple[str, ...]
    address: str
    tenant: str
    label: SafeString | None
    exempt: str
    standing: Panel


def seen_panel(viewer: Viewer) -> SeenPanel:
    """The panel of this very request."""
    found = seen(viewer.request)
    return SeenPanel(
        hops=tuple(Hop(hop.text, _role(hop.role), hop.role == "believed") for hop in found.hops),
        sentences=tuple(_sentences(found)),
        address=found.address or _("none that is usable: all such requests share one bucket"),
        tenant=found.tenant or _("none: it is counted by its address"),
        label=tenant_label(found.tenant) if found.tenant else None,
        exempt=_("yes: only limits of its own count") if found.exempt else _("no"),
        standing=panel_of(found.caller, viewer),
    )


def _role(role: Role) -> str:
    return {
        "claimed": _("claimed, not believed"),
        "believed": _("the caller"),
        "proxy": _("a proxy that is trusted"),
    }[role]


def _sentences(found: Seen) -> Iterable[str]:
    yield _forwarded(found)
    if found.left_out:
        yield ngettext(
            "%(count)s more entry of X-Forwarded-For is not shown.",
            "%(count)s more entries of X-Forwarded-For are not shown.",
            found.left_out,
        ) % {"count": found.left_out}
    for failed in found.failed:
        yield _("A callable of the settings fails: %s.") % failed


def _forwarded(found: Seen) -> str:
    texts = {
        "absent": _("There is no X-Forwarded-For, so who connects is the caller."),
        "ignored": _("X-Forwarded-For is not believed, since TRUSTED_PROXIES is 0."),
        "unset": _(
            "X-Forwarded-For comes from a private address, probably a proxy of yours, and is not "
            "believed, since TRUSTED_PROXIES is 0: all clients behind that proxy count as one. "
            "Set it to the number of your proxies."
        ),
        "believed": _(
            "TRUSTED_PROXIES is %(trusted)s: so many entries from the right were written by your "
            "proxies, and the first of these is the caller."
        ),
        "short": _(
            "TRUSTED_PROXIES is %(trusted)s, but X-Forwarded-For has fewer entries: the first "
            "one is believed. Somebody may come past your proxies."
        ),
    }
    return texts[found.forwarded] % {"trusted": found.trusted}
