"""A1: one full disk hinders nobody but the clients of its own broker.

Where more brokers live than a batch needs disks, whoever publishes to a broker with room is not told "too few disks
have it by now". Judged in runs whose only fault is `follower`, one full disk at a time: others may hinder as well.
"""

from __future__ import annotations

from .log_checkers import LogChecker

__all__ = ["StoredElsewhere"]


class StoredElsewhere(LogChecker):
    """See the head of this file."""

    def finish(self) -> None:
        """Nobody waited in vain."""
        if len(self.world.servers) > 2:
            late = {node.config.name: node.log.late for node in self.world.nodes() if node.log.late}
            if late:
                self.fail(f"batches waited too long for other disks: {late}")
