"""Commands whose tables are not there yet say what to run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import run
from tests.processes import run_processes

COMMANDS = [
    ["ratelimits_starter"],
    ["ratelimits_export"],
    ["ratelimits_apply", "/dev/null"],
    ["ratelimits_import", "--drf"],
    ["ratelimits_mode"],
    ["ratelimits_mode", "shadow", "--for", "1h"],
    ["ratelimits_replay", "/dev/null", "--plan", "free"],
    ["ratelimits_doctor"],
]


def endings(index: int, commands: list[list[str]]) -> list[tuple[int, str]]:
    ended = [run(*words) for words in commands]
    return [(each.code, each.out + each.err) for each in ended]


@pytest.mark.django_db(transaction=True)
def test_commands_say_what_to_run(tmp_path: Path) -> None:
    default = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(tmp_path / "empty.sqlite3")}
    (ended,) = run_processes(endings, 1, COMMANDS, settings={"DATABASES": {"default": default}})
    for words, (code, told) in zip(COMMANDS, ended, strict=True):
        assert code, words
        assert "Run: manage.py migrate ratelimits" in told, words
