"""The parts of the table. Each module measures one kind of thing, and yields its rows."""

from __future__ import annotations
