"""What a command says of a database that can't do what it is asked."""

from __future__ import annotations

from django.db import Error, ProgrammingError, connections
from django.utils.translation import gettext as _

from ratelimits.doctor.catalog import unapplied
from ratelimits.rows import write_alias


def fault_of(error: Error) -> str:
    """The database's own words, and what to do if its tables are not those of this version."""
    alias = write_alias()
    told = f"{alias}: {str(error).strip() or repr(error)}"
    if not _may_lack_tables(alias, error) or not unapplied(alias):
        return told
    return f"{told}\n{_('Run: manage.py migrate ratelimits')}"


def _may_lack_tables(alias: str, error: Error) -> bool:
    """Not asked of a server that does not answer, for which one would wait once more."""
    return isinstance(error, ProgrammingError) or connections[alias].vendor == "sqlite"
