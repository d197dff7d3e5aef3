"""Which database of which Redis server a cache alias uses, as far as its URL tells."""

from __future__ import annotations

import json
import re
from typing import NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

from django.conf import settings

# Redis has 16, unless it is told otherwise.
DATABASES = range(1, 16)


class Database(NamedTuple):
    server: str
    number: str


def locations(alias: str) -> list[str]:
    """The URLs of an alias, however they are listed."""
    location = settings.CACHES[alias].get("LOCATION", "")
    if isinstance(location, str):
        location = re.split("[;,]", location)
    return [str(url).strip() for url in location if url]


def database_of(url: str, alias: str) -> Database:
    """The server without user and password, and the database as redis-py picks it."""
    parts = urlsplit(url)
    query = parse_qs(parts.query).get("db")
    options = settings.CACHES[alias].get("OPTIONS", {})
    preset = {**options, **options.get("CONNECTION_POOL_KWARGS", {})}.get("db", 0)
    if parts.scheme == "unix":
        return Database(parts.path, query[0] if query else str(preset))
    host = parts.netloc.rpartition("@")[2].lower()
    server = host if re.search(r":\d+$", host) else f"{host}:6379"
    return Database(server, query[0] if query else parts.path.strip("/") or str(preset))


def entry_to_paste(alias: str) -> str:
    """Settings that give the limits a database that no alias uses yet."""
    urls = locations(alias)
    used = {database_of(url, name) for name in settings.CACHES for url in locations(name)}
    servers = {database_of(url, alias).server for url in urls}
    taken = {number for server, number in used if server in servers}
    number = next((n for n in DATABASES if str(n) not in taken), DATABASES[-1])
    moved = [_moved(url, number) for url in urls]
    location = json.dumps(moved[0] if len(moved) == 1 else moved)
    name = "ratelimits" if alias == "default" else alias
    return (
        f'CACHES["{name}"] = {{**CACHES["{alias}"], "LOCATION": {location}}}\n'
        f'and in RATELIMITS: "CACHE": "{name}"'
    )


def _moved(url: str, number: int) -> str:
    """The same server, another database. A password is not for a terminal."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    netloc = f"{user.partition(':')[0]}:<password>@{host}" if at else host
    query = {key: values[0] for key, values in parse_qs(parts.query).items() if key != "db"}
    path = f"/{number}"
    if parts.scheme == "unix":
        path, query["db"] = parts.path, str(number)
    return f"{parts.scheme}://{netloc}{path}" + (f"?{urlencode(query)}" if query else "")
