"""Progress: how far the logs have grown, how many tasks are done, and no harm when nobody answers."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Any

from headgate.ops.jobs.publish_progress import Progress
from headgate.protocol.errors import ConnectionLost
from tests.system.processes import wait_until


@dataclass
class Log:
    """A log of so many events."""

    next: int


@dataclass
class Client:
    """Every question finds one log longer than before."""

    step: int = 50
    fails: int = 0
    events: int = 100
    asked: list[Any] = field(default_factory=list)

    def ask(self, verb: str, **arguments: Any) -> Any:
        raise AssertionError("a job without a name is not asked about")

    def logs(self, stream: str | None = None, kind: str | int = "events") -> list[Log]:
        self.asked.append((stream, kind))
        if len(self.asked) in range(2, 2 + self.fails):
            raise ConnectionLost("away")
        self.events += self.step
        return [Log(self.events), Log(7)]


@dataclass
class Stage:
    """What Spark's tracker tells of a stage."""

    numTasks: int
    numCompletedTasks: int


class Session:
    """As much of a Spark session as is looked at."""

    @property
    def sparkContext(self) -> Session:
        return self

    def statusTracker(self) -> Session:
        return self

    def getActiveStageIds(self) -> list[int]:
        return [1, 2, 3]

    def getStageInfo(self, stage: int) -> Stage | None:
        return Stage(4, stage) if stage < 3 else None


EVERY = 0.001


def test_it_says_where_the_job_is_and_sums_up() -> None:
    said, client = io.StringIO(), Client()
    with Progress(Session(), client, stream=said, every_seconds=EVERY) as progress:
        wait_until(lambda: said.getvalue().count("\n") > 2)
    assert "3 of 8 tasks" in said.getvalue().splitlines()[0]
    grown = 50 * (len(client.asked) - 1)
    assert progress.summary().startswith(f"{grown:,} new: events in the log after")
    assert set(client.asked) == {(None, "events")}


def test_of_a_job_with_a_name_it_says_what_was_there() -> None:
    class Known(Client):
        answers = [40, 2, 45, 2]

        def ask(self, verb: str, **arguments: Any) -> Any:
            assert (verb, arguments["job"]) == ("producers", "q/nightly")
            after = "" if arguments["after"] else "q/nightly/0"
            return {"producers": [{"next": self.answers.pop(0)}], "next": after or None}

    with Progress(Session(), Known(), "q/nightly", quiet=True, every_seconds=EVERY) as progress:
        pass
    assert progress.summary().startswith("5 new, 42 were there: events in the log after")


def test_quiet() -> None:
    said, client = io.StringIO(), Client()
    with Progress(Session(), client, quiet=True, stream=said, every_seconds=EVERY):
        wait_until(lambda: len(client.asked) > 3)
    assert said.getvalue() == ""


def test_a_broker_that_is_away_for_a_moment_is_asked_again() -> None:
    said, client = io.StringIO(), Client(fails=2)
    with Progress(Session(), client, stream=said, every_seconds=EVERY) as progress:
        wait_until(lambda: "tasks" in said.getvalue())
    assert "cannot be asked just now" in said.getvalue()
    assert "events in the log" in progress.summary()
