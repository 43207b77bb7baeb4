"""P4: what clients can see is on enough disks, in one place, under one id; and the checker sees it when it is not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headgate.broker.core.effects import Send
from headgate.broker.simulator.checkers import SeenWhenSafe
from headgate.broker.simulator.engine import Violation
from headgate.protocol.data import LogShift, Portion, make_batch
from headgate.protocol.messages import Deliver
from tests.support.log_stage import WALL, LogStage

LINK = 5


class Seen(LogStage):
    """The stage, and what its brokers let clients see; `needed` is on how many other disks it has to be."""

    def __init__(self, needed: int = 1) -> None:
        super().__init__()
        self.needed = needed
        self.seen = self.checker(SeenWhenSafe)

    def host(self, server: int, readable: dict[Any, Any]) -> Any:
        subscribers = SimpleNamespace(by_link={LINK: None})
        node = SimpleNamespace(
            config=SimpleNamespace(name=self.server(server).name),
            log=SimpleNamespace(logs=readable),
            leader=SimpleNamespace(needed=self.needed),
            subscribers=subscribers,
        )
        return SimpleNamespace(node=node)

    def reads(self, server: int, owner: int, readable: int) -> None:
        """A broker with as much of that log to read takes a step."""
        self.seen.step(self.host(server, {self.name(owner): SimpleNamespace(readable=readable)}), None, [])

    def delivers(self, server: int, origin: str, base: int, *names: str, owner: int = 0, shift: int = 0) -> None:
        """A broker sends these to a subscriber, and says that they stand in the log of that owner."""
        batch = make_batch(["ledger/x"], {}, [name.encode() for name in names])
        portion = Portion(origin, base, WALL, b"", batch.topics, batch.lengths, batch.records, batch.count)
        portion.log = LogShift(self.name(owner).partition, shift)
        self.seen.step(self.host(server, {}), None, [Send(LINK, Deliver([1, len(names)], portion))])

    def copied(self, first: int, *names: str, owner: int = 0, origin: str = "o") -> None:
        """Two disks have it."""
        for server in (owner, (owner + 1) % 3):
            self.write(server, first, *names, owner=owner, origin=origin)


def test_what_two_disks_have_may_be_seen_by_anybody() -> None:
    one = Seen()
    one.copied(0, "a", "b")
    one.delivers(2, "o", 0, "a", "b")
    one.reads(0, 0, 2)
    one.reads(1, 0, 2)
    assert (one.seen.delivered_events, one.seen.read) == (2, 4)


def test_what_one_disk_has_may_not() -> None:
    one = Seen()
    one.write(0, 0, "a")
    with pytest.raises(Violation, match=r"a is delivered at .*, and 1 of 2 disks have it"):
        one.delivers(0, "o", 0, "a")
    with pytest.raises(Violation, match=r"a can be read at .*, and 1 of 2 disks have it"):
        one.reads(0, 0, 1)
    alone = Seen(needed=0)
    alone.write(0, 0, "a")
    alone.delivers(0, "o", 0, "a")


def test_rows_of_two_logs_that_have_it_once_each_do_not_count_together() -> None:
    one = Seen()
    one.write(0, 0, "a")
    one.write(1, 0, "a", owner=1, origin="p")
    with pytest.raises(Violation, match="1 of 2 disks have it"):
        one.delivers(0, "o", 0, "a")


def test_two_ids_of_one_event_are_seen() -> None:
    one = Seen()
    one.copied(0, "a")
    one.copied(0, "a", owner=1, origin="p")
    one.delivers(0, "o", 0, "a")
    with pytest.raises(Violation, match=r"a is delivered at .* as .*'p', 0.*, and was seen as .*'o', 0"):
        one.delivers(1, "p", 0, "a", owner=1)


def test_a_delivery_that_tells_another_place_is_seen() -> None:
    one = Seen()
    one.copied(0, "a", "b")
    for owner, shift in ((1, 0), (0, 1)):
        with pytest.raises(Violation, match=r"a is delivered as one of .*, and stands at"):
            one.delivers(2, "o", 0, "a", "b", owner=owner, shift=shift)


def test_what_can_be_read_in_two_places_is_seen() -> None:
    one = Seen()
    one.copied(0, "a")
    one.copied(1, "b")
    one.copied(1, "b", owner=1)
    one.reads(0, 0, 1)
    one.reads(1, 1, 2)
    with pytest.raises(Violation, match="b can be read at"):
        one.reads(0, 0, 2)


def test_what_cannot_be_read_yet_is_in_nobodys_way() -> None:
    one = Seen()
    one.copied(0, "a")
    one.write(1, 0, "a", owner=1, origin="p")
    one.reads(0, 0, 1)
    one.reads(1, 1, 0)
