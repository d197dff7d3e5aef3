"""The views of the benchmarks: each once without a limit, and once with each way to have one."""

from __future__ import annotations

from django.urls import path

from . import views
from .peers import RATELIMIT, SMART, is_here

urlpatterns = [
    path("plain", views.plain),
    path("protected", views.plain),
    path("limited", views.limited),
    path("limited-in-code", views.limited_in_code),
    path("drf", views.ApiView.as_view()),
    path("drf/cached", views.CachedView.as_view()),
    path("drf/limited", views.LimitedView.as_view()),
    path("drf/spent", views.SpentView.as_view()),
    path("drf/own", views.OwnView.as_view()),
    path("drf/own-spent", views.OwnSpentView.as_view()),
    path("async/plain", views.aplain),
    path("async/limited", views.alimited),
]
if is_here(RATELIMIT):
    urlpatterns.append(path("peers/ratelimit", views.by_django_ratelimit()))
if is_here(SMART):
    urlpatterns.append(path("peers/smart", views.by_smart()))
    urlpatterns.append(path("drf/smart", views.by_smart_throttle()))
