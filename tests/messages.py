"""What the package can write into its log, read from its source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import ratelimits

ROOT = Path(ratelimits.__file__).parent
LOGGERS = ("logger", "once")
# Errors whose text is logged as it is.
LOGGED = ("StoreBusy", "StoreError")
GAP = "…"


def messages() -> set[str]:
    """Each message, with a gap for whatever differs from one time to the next."""
    found = set()
    for path in ROOT.rglob("*.py"):
        tree = ast.parse(path.read_text())
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                found |= set(_messages(function))
    return {message for message in found if message.strip(GAP)}


def _messages(function: ast.AST) -> Iterator[str]:
    texts = {
        target.id: node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and node.args and _is_logged(node.func):
            argument = node.args[0]
            if isinstance(argument, ast.Name):
                argument = texts.get(argument.id, argument)
            yield _text(argument)


def _is_logged(called: ast.expr) -> bool:
    if isinstance(called, ast.Name):
        return called.id in LOGGED
    is_logger = isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name)
    return is_logger and called.value.id in LOGGERS and called.attr != "forget"  # type: ignore[attr-defined]


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.replace("%s", GAP).replace("%r", GAP)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_text, node.values))
    return GAP
