from __future__ import annotations

from django.apps import AppConfig


class DemoConfig(AppConfig):
    name = "demo_project"
    label = "demo"
    verbose_name = "The demo's shop"
    default_auto_field = "django.db.models.BigAutoField"
