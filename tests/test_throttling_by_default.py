from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_throttle_class_may_be_the_default_of_all_views() -> None:
    # In a process of its own: views read the setting once, when they are imported.
    code = """
import django
from django.conf import settings
settings.configure(
    INSTALLED_APPS=["rest_framework", "ratelimits"],
    REST_FRAMEWORK={
        "DEFAULT_THROTTLE_CLASSES": ["ratelimits.throttling.PlanRateThrottle"],
        "DEFAULT_AUTHENTICATION_CLASSES": [],
        "UNAUTHENTICATED_USER": None,
    },
)
django.setup()
from rest_framework.views import APIView
print([throttle.__name__ for throttle in APIView.throttle_classes])
"""
    finished = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert finished.stdout == "['PlanRateThrottle']\n", finished.stderr
