"""The history of a run of the log: what was published and what of it was acknowledged, and which disks were harmed."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["LogHistory"]


@dataclass(slots=True)
class LogHistory:
    """Events are known by their names, which are never used twice."""

    published: dict[str, float] = field(default_factory=dict)
    acknowledged: dict[str, float] = field(default_factory=dict)
    harmed: dict[str, float] = field(default_factory=dict)
    """Brokers whose disks lost something that they had said they have, and when."""
    refused: int = 0
    opened: int = 0
    resent: int = 0
