from __future__ import annotations

from django.contrib import admin
from django.contrib.staticfiles.urls import staticfiles_urlpatterns
from django.urls import path
from drf_spectacular.views import SpectacularJSONAPIView

from ratelimits.decorators import exempt
from ratelimits.views import rate_limit

from . import api, comparing, views

urlpatterns = [
    path("", views.home, name="home"),
    path("admin/", admin.site.urls),
    path("api/search", api.SearchView.as_view(), name="search"),
    path("api/orders", api.OrdersView.as_view(), name="orders"),
    path("api/version", views.version, name="version"),
    path("schema", exempt(SpectacularJSONAPIView.as_view()), name="schema"),
    path("rate_limit", rate_limit, name="rate_limit"),
    path("export", views.export, name="export"),
    path("contact", views.contact, name="contact"),
    path("health", views.health, name="health"),
    path("fixed", comparing.fixed),
    path("sliding", comparing.sliding),
    path("bucket", comparing.bucket),
    path("global", comparing.shared),
    path("daily/bucket", comparing.daily_bucket),
    path("daily/log", comparing.daily_log),
    path("written/<str:way>", comparing.written),
    # Only while DEBUG is on, as it is here.
    *staticfiles_urlpatterns(),
]
