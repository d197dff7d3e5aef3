"""What the project calls a tenant, by the setting TENANT_LABEL."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.utils.html import escape, format_html
from django.utils.safestring import SafeString

from ratelimits.conf import conf
from ratelimits.logs import once

# Anything else, such as javascript:, would run in the operator's session.
SAFE_SCHEMES = {"", "http", "https"}


def tenant_label(key: str) -> SafeString | None:
    """The project's name for a tenant, perhaps as a link. An error there is not the page's."""
    try:
        return _label(key)
    except Exception as error:
        once.error(f"TENANT_LABEL failed: {type(error).__name__}: {error}")
        return None


def _label(key: str) -> SafeString | None:
    ask = conf.imported("TENANT_LABEL")
    answer = ask(key) if ask else None
    if answer is None:
        return None
    text, url = answer if isinstance(answer, tuple | list) else (answer, None)
    if url is None or urlsplit(str(url)).scheme not in SAFE_SCHEMES:
        return escape(text)
    return format_html('<a href="{}">{}</a>', url, text)


def labelled(name: str, key: str) -> SafeString:
    """What we call a tenant, and after it what the project does."""
    label = tenant_label(key)
    return escape(name) if label is None else format_html("{}, {}", name, label)
