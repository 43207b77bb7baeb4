"""A Spark task without Spark: what `TaskContext.get()` says inside a test."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

__all__ = ["FakeTask", "in_task"]


@dataclass
class FakeTask:
    """The part of a task's context that the source reads; the names are Spark's."""

    partition: int = 0
    attempt_id: int = 0
    attempt: int = 0
    properties: dict[str, str] = field(default_factory=dict)

    def partitionId(self) -> int:
        """Which partition."""
        return self.partition

    def taskAttemptId(self) -> int:
        """Which attempt, of all in the application."""
        return self.attempt_id

    def attemptNumber(self) -> int:
        """Which attempt, of this task in its stage."""
        return self.attempt

    def getLocalProperty(self, name: str) -> str | None:
        """What the driver said about the job."""
        return self.properties.get(name)


def in_task(monkeypatch: pytest.MonkeyPatch, task: FakeTask) -> None:
    """From now on this is the running task."""
    from pyspark import TaskContext

    monkeypatch.setattr(TaskContext, "get", classmethod(lambda _: task))
