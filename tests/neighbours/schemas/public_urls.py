"""What there is at the domain of those who run the service."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

from .urls import page

urlpatterns = [page, path("admin/", admin.site.urls)]
