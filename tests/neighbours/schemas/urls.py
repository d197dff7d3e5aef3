"""What each customer has at its own domain."""

from __future__ import annotations

from django.urls import path

from ratelimits.decorators import ratelimit
from tests.neighbours.page import sample
from tests.views import hello

page = path("page", ratelimit()(hello))
urlpatterns = [page, *sample("customers = AdminSite")["urlpatterns"]]
