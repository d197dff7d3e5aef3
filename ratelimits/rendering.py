"""How a refusal looks in a response of Django REST framework."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rest_framework.renderers import BaseRenderer
from rest_framework.settings import api_settings
from rest_framework.utils.encoders import JSONEncoder

from .publishing.problems import CONTENT_TYPE
from .publishing.responses import is_browser, page

if TYPE_CHECKING:
    from .throttling import PlanThrottled


def show(request: Any, response: Any, refusal: PlanThrottled) -> None:
    """Make DRF's body of a refusal the problem, in the form that the client can read.

    A body that does not tell our `detail` is the project's, and so are members added to it.
    """
    data = getattr(response, "data", None)
    if not isinstance(data, dict) or data.get("detail") is not refusal.detail:
        return
    response.data = {**refusal.problem, **data}
    usual = response.accepted_renderer
    if not _is_for_people(request, usual):
        response.accepted_renderer = ProblemRenderer()
    elif usual.format == "html" and not _has_template(usual, response):
        response.accepted_renderer = PageRenderer(page(request, refusal.decision))


def _is_for_people(request: Any, renderer: Any) -> bool:
    """Whether a page was asked for, not just given for want of another renderer."""
    if renderer.format not in ("api", "html", "admin"):
        return False
    asked = request.query_params.get(api_settings.URL_FORMAT_OVERRIDE or "")
    return is_browser(request) or asked == renderer.format


def _has_template(renderer: Any, response: Any) -> bool:
    """Whether the project has a page of its own for errors."""
    names = getattr(renderer, "exception_template_names", ())
    try:
        renderer.resolve_template([name % {"status_code": response.status_code} for name in names])
    except Exception:
        # As DRF does, which has nothing but the status line to show then.
        return False
    return True


class ProblemRenderer(BaseRenderer):
    """Problems as JSON, whatever was asked for."""

    media_type = CONTENT_TYPE
    format = "json"
    charset = None

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        return json.dumps(data, cls=JSONEncoder).encode()


class PageRenderer(BaseRenderer):
    """A page that was made elsewhere."""

    charset = None
    format = "html"

    def __init__(self, made: Any) -> None:
        self.made = made
        self.media_type = made["Content-Type"]

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        content: bytes = self.made.content
        return content
