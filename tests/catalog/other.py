"""Another real process, which edits and takes when it is told to."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from tests.processes import Crowd, crowd

Left = dict[str, tuple[int, int]]


class Other:
    """One that is asked, as often as one likes, for what a function of ALL returns there."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.crowd: AbstractContextManager[Crowd] = crowd(1, settings)

    def __enter__(self) -> Other:
        self.process = self.crowd.__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        self.crowd.__exit__(*exc)

    def ask(self, name: str, *args: Any) -> Any:
        (answer,) = self.process.run(call, name, *args, timeout=120)
        return answer


def call(index: int, name: str, *args: Any) -> Any:
    from .edits import ALL

    return ALL[name](*args)
