"""The transports of httpx and httpx2 that do the sending, through the proxies of the environment.

A client that is given a transport leaves proxies to it, so that whoever put ours in between would
lose the project's.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any
from urllib.request import getproxies, proxy_bypass

from .streams import library_of


class Inner:
    """The one that was given; else one for each proxy, and one for where there is none.

    These are of the library of the client's first request, whose pool is fine with being late for
    it. `kind` is the name of their class.
    """

    def __init__(self, given: Any, kind: str) -> None:
        self.given = given
        self._kind = kind
        self._lock = Lock()
        self._proxies: dict[str, str] | None = None
        self._made: dict[str | None, Any] = {}

    def of(self, request: Any) -> Any:
        """What sends a request."""
        if self.given is not None:
            return self.given
        with self._lock:
            if self._proxies is None:
                self._proxies = getproxies()
            proxy = proxy_for(request.url, self._proxies)
            if proxy not in self._made:
                make = getattr(library_of(request), self._kind)
                self._made[proxy] = make() if proxy is None else make(proxy=proxy)
            return self._made[proxy]

    def all(self) -> Sequence[Any]:
        """Those there are."""
        with self._lock:
            return [*self._made.values()] if self.given is None else [self.given]


def proxy_for(url: Any, proxies: dict[str, str]) -> str | None:
    """The proxy on the way to a URL, by the variables `HTTP_PROXY`, `NO_PROXY` and their like."""
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy:
        return None
    host = url.host if url.port is None else f"{url.host}:{url.port}"
    if proxy_bypass(host):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"
