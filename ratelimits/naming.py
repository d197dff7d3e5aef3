"""What a limit at a view is called: a name to publish, and one that no other view has."""

from __future__ import annotations

from functools import partial
from inspect import ismethod
from typing import Any, NamedTuple


class Named(NamedTuple):
    """The published name, and what the state is found by: the same in every process."""

    shown: str
    ident: str


def name_of(view: Any, owner: type | None = None) -> Named:
    """The name of a view; `owner` is the class that a method is called on.

    Classes that inherit a limited method count apart, as do views that are made of one class or
    function with other arguments.
    """
    if isinstance(view, partial):
        return _of_partial(view, owner)
    if ismethod(view):
        return name_of(view.__func__, type(view.__self__))
    made = getattr(view, "view_class", None)
    if made is not None:
        arguments = _text(getattr(view, "view_initkwargs", {}))
        return Named(made.__name__, f"{_path(made)}{arguments}")
    function = view if hasattr(view, "__qualname__") else type(view)
    if owner is None:
        return Named(function.__name__, _path(function))
    method = "" if function.__name__ == "dispatch" else f".{function.__name__}"
    return Named(f"{owner.__name__}{method}", f"{_path(owner)}:{function.__qualname__}")


def _of_partial(view: Any, owner: type | None) -> Named:
    # Under method_decorator it stands for a bound method, and is called as that is.
    inner = name_of(view.func, owner)
    arguments = {str(place): value for place, value in enumerate(view.args)} | view.keywords
    return Named(inner.shown, f"{inner.ident}{_text(arguments)}")


def _path(of: Any) -> str:
    return f"{of.__module__}.{of.__qualname__}"


def _text(arguments: dict[str, Any]) -> str:
    """What arguments say that is the same in every process: addresses in memory are not."""
    return "".join(f";{name}={_constant(arguments[name])}" for name in sorted(arguments))


def _constant(value: Any) -> str:
    if isinstance(value, (str, int, float, bytes, type(None))):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(_constant, value))}]"
    return _path(value if hasattr(value, "__qualname__") else type(value))
