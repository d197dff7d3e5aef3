"""What is claimed about speed, memory and exactness, measured: `python -m benchmarks`."""

from __future__ import annotations
