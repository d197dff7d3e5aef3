from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "tests" / "ordinary_project"
USED = re.compile(r"rest_framework(?=\.throttling)")


def imported_from(package: str, project: Path) -> int:
    """Change nothing but where the throttle classes come from. How often they did."""
    changed = 0
    for file in project.rglob("*.py"):
        text, number = USED.subn(package, file.read_text())
        file.write_text(text)
        changed += number
    return changed


@pytest.mark.parametrize(
    ("package", "is_installed"),
    [("rest_framework", False), ("ratelimits", False), ("ratelimits", True)],
)
def test_its_own_tests_pass_with_either(package: str, is_installed: bool, tmp_path: Path) -> None:
    """Another import is the whole migration, also of a project's tests of its throttles."""
    project = tmp_path / "project"
    shutil.copytree(PROJECT, project, ignore=shutil.ignore_patterns("__pycache__"))
    assert imported_from(package, project) >= 4
    if is_installed:
        settings = project / "shop" / "settings.py"
        apps = '    "rest_framework",\n'
        settings.write_text(settings.read_text().replace(apps, f'{apps}    "ratelimits",\n', 1))
    done = subprocess.run(
        [sys.executable, "-W", "error", "manage.py", "test"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT), "DJANGO_SETTINGS_MODULE": "shop.settings"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "Ran 23 tests" in done.stderr
