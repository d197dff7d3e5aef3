"""The commands in a project that has no admin."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.processes import ROOT

CODE = """
import django
django.setup()
from django.core.management import CommandError, call_command, get_commands, load_command_class
call_command("migrate", verbosity=0)
for name, app in get_commands().items():
    if app == "ratelimits":
        load_command_class(app, name)
call_command("ratelimits_starter")
call_command("ratelimits_show", "user:7")
call_command("ratelimits_reset", "user:7")
call_command("ratelimits_check")
call_command("ratelimits_mode", "shadow", time="1m")
try:
    call_command("ratelimits_reset", "user:7", user="maria")
except CommandError as error:
    print(error)
"""


def test_all_of_them(tmp_path: Path) -> None:
    database = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(tmp_path / "db.sqlite3")}
    apps = ["django.contrib.auth", "django.contrib.contenttypes", "ratelimits"]
    settings = {"INSTALLED_APPS": apps, "MIDDLEWARE": [], "DATABASES": {"default": database}}
    variables = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "RATELIMITS_TEST_SETTINGS": json.dumps(settings),
    }
    ended = subprocess.run(
        [sys.executable, "-c", CODE],
        cwd=ROOT,
        env=variables,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    assert "The history is the admin's, which is not installed." in ended.stdout
