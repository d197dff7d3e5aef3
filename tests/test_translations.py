"""Whatever people see or hear can be translated."""

from __future__ import annotations

import ast
import getpass
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

import ratelimits
from ratelimits.limits import Decision, Limit, Outcome
from ratelimits.publishing.problems import problem_of
from ratelimits.rates import Rate
from tests.admin_pages import PAGES, POSTED, address, make_rows, posted, typed
from tests.commands import run
from tests.pseudo import pseudo, unmarked, unmarked_in_page

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.urls("tests.admin_site"),
    pytest.mark.usefixtures("fresh"),
]


ROOT = Path(ratelimits.__file__).parent
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
TRANSLATES = re.compile(r"_|n?p?gettext(_lazy|_noop)?")
# Of what these are given are made names in the store, and errors for developers.
NAMES = ("digest", "super().__init__")
# --help is in English everywhere in Django, and so are permissions and errors for developers.
ENGLISH = ("help", "permissions", "BARE", "ABOVE_DRF")
# Django's own texts that are not translated: of icons.
OF_DJANGO = {"Search", "True", "False", "None"}


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.fixture
def operator(client: Client, settings: Any) -> Client:
    settings.RATELIMITS = {"TENANT": lambda request: typed("acme")}
    make_rows()
    client.force_login(User.objects.get())
    return client


@pytest.mark.parametrize("name", PAGES)
def test_pages(name: str, operator: Client) -> None:
    with pseudo():
        response = operator.get(address(name))
    if response.status_code in (302, 403, 405):
        return
    assert response.status_code == 200
    assert set(unmarked_in_page(response.content.decode())) <= OF_DJANGO


@pytest.mark.parametrize("name", POSTED)
def test_answers_to_forms(name: str, operator: Client) -> None:
    url, data = posted(name)
    with pseudo():
        response = operator.post(url, data)
    assert response.status_code == 200
    assert set(unmarked_in_page(response.content.decode())) <= OF_DJANGO


def test_what_is_not_translated_is_found() -> None:
    html = '<p title="Hint">⟦One⟧ two «three»</p><script>four</script><input type=submit value=Go>'
    assert unmarked_in_page(html) == ["two", "Hint", "Go"]
    assert unmarked("⟦of ⟦a⟧ b⟧ and ⟦c⟧") == ["and"]


@pytest.mark.parametrize("path", TEMPLATES, ids=named)
def test_templates(path: Path) -> None:
    """Also those parts that no page of the tests shows."""
    text = re.sub(r"(?s){% blocktranslate.*?{% endblocktranslate %}", "", path.read_text())
    text = re.sub(r"(?s){% block bodyclass %}.*?{% endblock %}", "", text)
    text = re.sub(r"(?s){#.*?#}|{%.*?%}|{{.*?}}", "", text)
    assert unmarked_in_page(text) == []


def test_texts_in_the_code() -> None:
    """Also those that no test sees. What is for developers and logs is English, as in Django."""
    for_developers = ("checks", "extras.py", "migrations", "stores", "testing")
    found = [
        f"{named(path)}: {text}"
        for path in sorted(ROOT.rglob("*.py"))
        if named(path).partition("/")[0] not in for_developers
        for text in untranslated(ast.parse(path.read_text()))
    ]
    assert found == []


def untranslated(tree: ast.AST) -> Iterator[str]:
    """Constants with words in them, and texts to translate that are not constant."""
    if isinstance(tree, ast.Call):
        name = ast.unparse(tree.func)
        if TRANSLATES.fullmatch(name):
            if not isinstance(tree.args[0], ast.Constant) and name != "_":
                yield ast.unparse(tree)
            return
        if name.startswith(("logger.", "once.", "add_argument")) or name in NAMES:
            return
    if isinstance(tree, ast.Raise) and "CommandError" not in ast.unparse(tree):
        return
    if isinstance(tree, ast.Expr) and isinstance(tree.value, ast.Constant):
        return
    if isinstance(tree, ast.keyword) and tree.arg == "help":
        return
    if isinstance(tree, ast.Assign) and ast.unparse(tree.targets[0]) in ENGLISH:
        return
    if isinstance(tree, ast.Constant) and isinstance(tree.value, str):
        text = re.sub(r"<[^>]*>?|[^<]*>", "", tree.value)
        if re.search(r"[^\W\d_]{2,} [^\W\d_]{2,}", text):
            yield tree.value
    for child in ast.iter_child_nodes(tree):
        yield from untranslated(child)


# Commands that tell something, as they are typed.
TOLD = [
    ("ratelimits_starter",),
    ("ratelimits_starter", "--add-missing"),
    ("ratelimits_refresh",),
    ("ratelimits_refresh", "--tenant", typed("acme")),
    ("ratelimits_mode",),
    ("ratelimits_mode", "shadow", "--for", "30m", "--reason", typed("A launch.")),
    ("ratelimits_mode", "off"),
    ("ratelimits_show", typed("acme")),
    ("ratelimits_reset", typed("acme")),
    ("ratelimits_reset", typed("acme"), "--dry-run"),
]


@pytest.mark.parametrize("command", TOLD, ids=" ".join)
@pytest.mark.parametrize("rows", [False, True], ids=["empty", "plans"])
def test_commands(command: tuple[str, ...], rows: bool) -> None:
    if rows:
        make_rows()
    with pseudo():
        ended = run(*command)
    words = set(unmarked(ended.out) + unmarked(ended.err))
    # Slugs of plans, rates as they were typed, and who the system says calls.
    data = {"free", "pro", "enterprise", "requests", "daily", "unlimited", "month"}
    assert words <= {*data, getpass.getuser()}


def test_refusals() -> None:
    with pseudo():
        texts = [rate.describe() for rate in map(Rate.parse, ("1/s", "10/5m", "7/month"))]
        decision = Decision((Outcome(Limit("n", Rate(5, 60)), False, 0, 1, 1, 1),))
        problem = problem_of(decision)
    for text in (*texts, problem["title"], problem["detail"]):
        assert unmarked(text) == []


@pytest.mark.parametrize("rate", ["", "x", "1/x", "1/0s", "2/2month", "1/9999d", "9" * 20 + "/s"])
def test_wrong_rates(rate: str) -> None:
    with pseudo(), pytest.raises(ValueError, match="⟦") as wrong:
        Rate.parse(rate)
    assert set(unmarked(str(wrong.value))) <= {"month"}
