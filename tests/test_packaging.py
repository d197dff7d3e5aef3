from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import call_command

import ratelimits

ROOT = Path(__file__).parent.parent
PACKAGE = Path(ratelimits.__file__).parent


@pytest.mark.django_db
def test_migrations_are_complete() -> None:
    try:
        call_command("makemigrations", check=True, dry_run=True, verbosity=3)
    except SystemExit:
        pytest.fail("models and migrations differ: see what makemigrations printed")


def test_type_hints_are_announced() -> None:
    assert (PACKAGE / "py.typed").is_file()


@pytest.mark.parametrize("module", ["", ".rates", ".limits", ".algorithms", ".exceptions"])
def test_values_need_neither_settings_nor_models(module: str) -> None:
    code = (
        f"import sys, ratelimits{module}\n"
        "unwanted = {'ratelimits.models', 'ratelimits.conf', 'django.db'} & set(sys.modules)\n"
        "sys.exit(f'imported {unwanted}' if unwanted else 0)"
    )
    # -E: no DJANGO_SETTINGS_MODULE either.
    finished = subprocess.run(
        [sys.executable, "-E", "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr


def test_readme_has_one_command_for_the_demo_and_one_for_the_tests() -> None:
    lines = [line.strip() for line in (ROOT / "README.md").read_text().splitlines()]
    commands = [line for line in lines if line.startswith("python3 -m venv .venv &&")]
    assert [command.rsplit("/", 1)[-1] for command in commands] == [
        "python manage.py demo",
        "pytest",
    ]


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("throttling", "rest_framework", "drf"),
        ("contrib.rest_framework", "rest_framework", "drf"),
        ("contrib.prometheus", "prometheus_client", "prometheus"),
        ("contrib.spectacular", "drf_spectacular", "spectacular"),
    ],
)
def test_a_package_that_is_not_there_is_named_with_its_extra(
    module: str, package: str, extra: str
) -> None:
    code = (
        f"import sys, django\nsys.modules[{package!r}] = None\n"
        "from django.conf import settings\nsettings.configure()\ndjango.setup()\n"
        f"try:\n    import ratelimits.{module}\n"
        "except ModuleNotFoundError as error:\n    print(error.name, error)\n"
    )
    finished = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    name, _, told = finished.stdout.partition(" ")
    assert name.partition(".")[0] == package
    assert f"pip install 'django-ratelimits[{extra}]'" in told
