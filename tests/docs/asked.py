"""Which samples the tests ask for, by reading the tests.

A test asks by calling a function of tests/docs/samples.py with a page, and with what the sample
holds or a heading above it. Where a function of the tests' own passes that on, it is whatever the
modules that use it name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeVar

from tests.docs.pages import pages
from tests.docs.samples import MODULE, Sample, samples, steps
from tests.processes import ROOT

N = TypeVar("N", bound=ast.AST)
ASKING = {"commands", "modules", "sample", "steps"}
# A shorter word may be in a test for any reason.
LEAST = 6


class Asking(NamedTuple):
    """A call that asks for something of a page; `what` is None if the call passes it on."""

    kind: str
    page: str
    what: str | None


@cache
def asked() -> set[Sample]:
    """All samples that some test asks for."""
    found = set[Sample]()
    for path, tree in trees().items():
        for asking in calls(tree):
            found |= set(_meant(asking, path))
    return found


@cache
def trees() -> dict[Path, ast.Module]:
    """The modules of the tests that ask for samples."""
    texts = {path: path.read_text() for path in (ROOT / "tests").rglob("*.py")}
    return {path: ast.parse(text) for path, text in texts.items() if "docs.samples" in text}


def calls(tree: ast.Module) -> Iterator[Asking]:
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }

    def text_of(node: ast.expr) -> str | None:
        node = constants.get(node.id, node) if isinstance(node, ast.Name) else node
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        return str(ast.literal_eval(node)) if is_text else None

    asking = {
        alias.asname or alias.name: alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "tests.docs.samples"
        for alias in node.names
    }
    # Of `modules(PAGE)["name"]` the inner call is no other.
    picked = {id(node.value): node.slice for node in _all(tree, ast.Subscript)}
    for call in _all(tree, ast.Call):
        name = asking.get(call.func.id, "") if isinstance(call.func, ast.Name) else ""
        page = text_of(call.args[0]) if name in ASKING and call.args else None
        if page in pages():
            what = call.args[1] if call.args[1:] else picked.get(id(call))
            yield Asking(name, str(page), text_of(what) if what is not None else "")


def _all(tree: ast.Module, kind: type[N]) -> Iterator[N]:
    return (node for node in ast.walk(tree) if isinstance(node, kind))


def _meant(asking: Asking, path: Path) -> Iterator[Sample]:
    kind, page, what = asking
    every = samples(page)
    if kind == "steps":
        yield from steps(page, what or "")
    elif kind == "commands":
        yield from (each for each in every if each.language == "sh")
    elif kind == "modules":
        named = [(MODULE.fullmatch(each.text), each) for each in every]
        yield from (each for match, each in named if match and what in ("", match[1]))
    else:
        for words in [what] if what else _passed_on(path):
            holding = [each for each in every if words in each.text]
            yield from holding if len(holding) == 1 else ()


@cache
def _passed_on(path: Path) -> list[str]:
    """All texts in a module, and in those that import from it."""
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    tests = (ROOT / "tests").rglob("*.py")
    others = [other for other in tests if f"from {name} " in other.read_text()]
    found = [
        node.value
        for module in [path, *others]
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return [text for text in found if len(text) >= LEAST]
