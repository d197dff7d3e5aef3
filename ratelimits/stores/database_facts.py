"""What the table of counts holds."""

from __future__ import annotations

from django.db import connections

from .database_opening import own_file
from .database_tables import Table
from .facts import DatabaseFacts

# As many rows are counted at most, since some databases read them all for it.
MOST_ROWS = 100_000


def look(table: Table) -> DatabaseFacts:
    """May raise any of Django's database errors."""
    rows, expired = table.census(MOST_ROWS)
    return DatabaseFacts(table.connection.vendor, rows, expired, MOST_ROWS)


def address(alias: str, is_borrowed: bool) -> str:
    """Where the database is, without user and password."""
    entry = connections.settings.get(alias)
    if entry is None:
        return f'database "{alias}"'
    name = str(entry["NAME"])
    if connections[alias].vendor == "sqlite":
        place = name if is_borrowed else own_file(name)
    else:
        port = f":{entry['PORT']}" if entry["PORT"] else ""
        place = f"{name} on {entry['HOST'] or 'localhost'}{port}"
    return f'database "{alias}", {place}'
