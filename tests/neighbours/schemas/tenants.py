"""The resolver that docs/neighbours.md shows."""

from __future__ import annotations

from tests.neighbours.page import sample

by_schema = sample("def by_schema")["by_schema"]
