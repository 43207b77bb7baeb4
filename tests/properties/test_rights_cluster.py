"""Property: on two brokers, with rights that change while events are on their way, what is given is what is allowed.

Live, by a durable subscription, and by readers of the logs, who go on in the middle or wait for disks (replay, Spark).
The reference is brute force: what comes has to be allowed when it comes, and what was asked for and allowed all the
time has to come, once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.broker.core.inputs import Governed
from headgate.broker.core.safeguards import SAFEGUARDS, Safeguard
from headgate.protocol.data import decode_record, decode_row, row_batch
from headgate.protocol.messages import (
    Ack,
    AckVerb,
    Ended,
    Error,
    Handed,
    LogChunk,
    Mode,
    ReadLog,
    Suback,
    Subscribe,
    Unsubscribe,
)
from tests.properties.test_rights import CONDITIONS, ROWS, USERS, handed_to, is_at, may, policy_of
from tests.support.builders import deliveries_of, make_publish, quote_batch
from tests.support.log_cluster import LogCluster
from tests.support.node_cluster import Client

pytestmark = pytest.mark.slow

QUIET_SECONDS = 2.0
PLACES = ("b0", "b1")
DURABLE = 1
STORED = st.sampled_from(["quotes", "quotes/a", "quotes/*/x", "quotes/b"])
RIGHT = st.tuples(STORED, CONDITIONS)
MANY = st.lists(RIGHT, max_size=3)
ROLES = st.tuples(*[st.tuples(st.one_of(st.just([("quotes", "")]), MANY), st.lists(RIGHT, max_size=1)) for _ in USERS])
USER = st.integers(0, 1)
PAUSES = st.sampled_from([0.0002, 0.0006, 0.0012, 0.0025, 0.004])
"""Seconds. A disk has a row after 0.5 ms, the other broker's after 2, and both know after 3."""
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.tuples(USER, ROWS)),
        st.tuples(st.just("race"), st.tuples(USER, ROWS, ROLES, PAUSES, PAUSES)),
        st.tuples(st.just("roles"), ROLES),
        st.tuples(st.just("live"), st.tuples(USER, STORED, CONDITIONS)),
        st.tuples(st.just("attach"), USER),
        st.tuples(st.just("detach"), USER),
        st.tuples(st.just("read"), USER),
    ),
    min_size=4,
    max_size=12,
)
WISHES = st.tuples(*[st.tuples(STORED, CONDITIONS) for _ in USERS])
ALL: Any = [([("quotes", "")], []), ([("quotes", "")], [])]


@dataclass
class Event:
    """What was published, and what was asked for and allowed since."""

    body: str
    row: Any
    place: str
    always: list[bool]
    """By user: whether it was allowed at every moment."""
    live: dict[int, int] = field(default_factory=dict)
    """Subscription -> user, of those that have to be given it."""
    raced: bool = False


class Realm:
    """Two brokers with a user at each, and what brute force says of them."""

    def __init__(self, wishes: Any, safeguards: frozenset[Safeguard]) -> None:
        self.cluster = LogCluster(2, check_every=20, safeguards=safeguards)
        self.wishes, self.roles = wishes, ALL
        self._govern(ALL)
        self.feeds = [self.cluster.connect(place, "feed") for place in PLACES]
        self.clients = [self.cluster.connect(place, user) for place, user in zip(PLACES, USERS, strict=True)]
        self.events: dict[str, Event] = {}
        self.live: dict[int, tuple[int, str, str]] = {}
        self.attached = [False, False]
        self.handed: list[set[str]] = [set(), set()]
        self.since: list[int | None] = [None, None]  # how many events there were when the durable one was made
        self.positions = {(user, place): 0 for user in (0, 1) for place in PLACES}
        self.reading: dict[int, tuple[int, str, int]] = {}  # request -> user, whose log, from where
        self._requests = 10

    # --- what happens ------------------------------------------------------------------------------------------------

    def step(self, kind: str, what: Any) -> None:
        getattr(self, f"_{kind}")(*(what if kind in ("publish", "race", "live") else (what,)))
        self.settle()

    def settle(self) -> None:
        """Time goes on until all has come, and what came is right."""
        for _ in range(20):
            self.cluster.run(QUIET_SECONDS)
            if not self.collect():
                break
        for event in self.events.values():
            assert not event.live, f"{event} was to be given"
        for user, since in enumerate(self.since):
            if since is not None and self.attached[user]:
                wanted = [one.body for one in list(self.events.values())[since:] if one.always[user]]
                wanted = [body for body in wanted if self._wished(user, self.events[body].row)]
                assert set(wanted) <= self.handed[user], (wanted, self.handed[user])

    def _publish(self, place: int, rows: Any, raced: bool = False) -> None:
        rows = [row for row in rows if row[0].startswith("quotes")]
        if not rows:
            return
        bodies = [str(len(self.events) + at) for at in range(len(rows))]
        for body, row in zip(bodies, rows, strict=True):
            event = Event(body, row, PLACES[place], [may(self.roles, user, row) for user in (0, 1)], raced=raced)
            if not raced:
                asked = {number: one for number, one in self.live.items() if is_at(*one[1:], row) is True}
                event.live = {number: one[0] for number, one in asked.items() if event.always[one[0]]}
            self.events[body] = event
        columns = {"p": [row[1] for row in rows], "s": [row[2] for row in rows]}
        client = self.feeds[place]
        client.sequence += 1
        batch = quote_batch([row[0] for row in rows], bodies, None, **columns)
        client.send(make_publish(client.sequence, batch, Mode.STORED))

    def _race(self, place: int, rows: Any, roles: Any, before: float, after: float) -> None:
        """Rights change while events are on their way."""
        ends = {at: sum(one.place == at for one in self.events.values()) for at in PLACES}
        self._publish(place, rows, raced=True)
        self.cluster.run(before)
        for user, at in enumerate(PLACES):
            self._ask(user, at, ends[at])  # what is on too few disks yet is waited for
        self.cluster.run(after)
        self._roles(roles)

    def _roles(self, roles: Any) -> None:
        self.collect()
        self._govern(roles)
        for event in self.events.values():
            event.always = [was and may(roles, user, event.row) for user, was in enumerate(event.always)]

    def _govern(self, roles: Any) -> None:
        self.roles = roles
        for host in self.cluster.hosts.values():
            self.cluster.feed(host, Governed(policy_of(roles)))

    def _live(self, user: int, pattern: str, condition: str) -> None:
        number = 100 + len(self.live)
        while number in self.live:
            number += 1
        self.live[number] = (user, pattern, condition)
        self.clients[user].subscribe(number, pattern, condition)

    def _attach(self, user: int) -> None:
        if not self.attached[user]:
            self.attached[user] = True
            pattern, condition = self.wishes[user]
            self.clients[user].send(Subscribe(3, DURABLE, pattern, condition, {"durable": f"of {USERS[user]}"}))

    def _detach(self, user: int) -> None:
        if self.attached[user]:
            self.attached[user] = False
            self.clients[user].send(Unsubscribe(4, DURABLE))

    def _read(self, user: int) -> None:
        for place in PLACES:
            self._ask(user, place, self.positions[user, place])

    def _ask(self, user: int, place: str, position: int) -> None:
        if not any(one.place == place for one in self.events.values()):
            return  # there is no log yet
        self._requests += 1
        self.reading[self._requests] = (user, place, position)
        name = self.cluster.name(place)
        message = ReadLog(self._requests, name.broker, name.epoch, name.kind, "quotes", position, 2, *self.wishes[user])
        self.clients[user].send(message)

    def _wished(self, user: int, row: Any) -> bool:
        """Whether that user's durable subscription and readers ask for it."""
        pattern, condition = self.wishes[user]
        return is_at(pattern, condition, row) is True

    # --- what is right -----------------------------------------------------------------------------------------------

    def collect(self) -> int:
        """What came since it was last asked, all of it while the rights are as they are: how many messages."""
        came = 0
        for user, client in enumerate(self.clients):
            messages = client.take()
            came += len(messages)
            for number, body in deliveries_of(messages):
                owner, pattern, condition = self.live[number]
                event = self.events[body]
                assert owner == user and is_at(pattern, condition, event.row) is True
                assert may(self.roles, user, event.row), f"{event} is given to {USERS[user]}"
                assert event.live.pop(number, None) is not None or event.raced, f"{event} comes twice"
            for message in messages:
                if isinstance(message, Handed):
                    self._check_handed(user, client, message)
                elif isinstance(message, LogChunk):
                    self._check_chunk(user, message)
                elif isinstance(message, Suback) and message.subscription == DURABLE and self.since[user] is None:
                    self.since[user] = len(self.events)
                elif isinstance(message, Ended):
                    self._ended(user, message.subscription)
                elif isinstance(message, Error):
                    self._refused(user, message)
        return came

    def _check_handed(self, user: int, client: Client, message: Handed) -> None:
        for body in handed_to([message]):
            event = self.events[body]
            assert self._wished(user, event.row) and may(self.roles, user, event.row), event
            assert body not in self.handed[user], f"{event} is handed out twice"
            self.handed[user].add(body)
        client.send(Ack(5, DURABLE, AckVerb.ACK, [message.first, message.first + message.portion.count - 1]))

    def _check_chunk(self, user: int, message: LogChunk) -> None:
        owner, place, position = self.reading.pop(message.request)
        rows = [row_batch(decode_row(data)) for data in message.rows]
        bodies = [decode_record(piece)[1].decode() for row in rows for piece in row.pieces()]
        there = [one for one in self.events.values() if one.place == place][position : message.next]
        wanted = [one.body for one in there if self._wished(user, one.row)]
        assert owner == user and bodies == [body for body in wanted if may(self.roles, user, self.events[body].row)]
        if position == self.positions[user, place]:
            self.positions[user, place] = message.next

    def _ended(self, user: int, subscription: int) -> None:
        if subscription == DURABLE:
            self.attached[user] = False
        else:
            del self.live[subscription]
            for event in self.events.values():
                event.live.pop(subscription, None)

    def _refused(self, user: int, message: Error) -> None:
        if message.reference in self.reading:
            del self.reading[message.reference]
        elif message.reference == 3:
            self.attached[user] = False
        else:
            del self.live[message.reference - 100]


def run(wishes: Any, steps: Any, safeguards: frozenset[Safeguard] = SAFEGUARDS) -> Realm:
    """Raises AssertionError where somebody is given something else than brute force says."""
    realm = Realm(wishes, safeguards)
    for kind, what in steps:
        realm.step(kind, what)
    realm.step("roles", ALL)
    return realm


@given(WISHES, STEPS)
@settings(max_examples=40)
def test_live_replayed_and_durable_are_those_of_brute_force(wishes: Any, steps: Any) -> None:
    run(wishes, [("attach", 0), ("attach", 1), *steps])


ROWS_OF_TWO = [("quotes/a", 2, "O"), ("quotes/b", 2, None)]
NARROW: Any = [([("quotes", "s = 'O'")], []), ([("quotes", "")], [])]
WISH: Any = (("quotes", ""), ("quotes", ""))
REPLAYED = [("publish", (0, ROWS_OF_TWO)), ("publish", (0, ROWS_OF_TWO)), ("read", 0), ("roles", NARROW), ("read", 0)]
GATHERED = [("attach", 0), ("detach", 0), ("publish", (1, ROWS_OF_TWO)), ("roles", NARROW), ("attach", 0)]
RACED = [("publish", (0, ROWS_OF_TWO)), ("race", (0, ROWS_OF_TWO, NARROW, 0.0006, 0.0002))]


@pytest.mark.parametrize("steps", [REPLAYED, GATHERED], ids=["replay", "durable"])
def test_rights_are_looked_at_again(steps: Any) -> None:
    run(WISH, steps)
    with pytest.raises(AssertionError):
        run(WISH, steps, SAFEGUARDS - {Safeguard.RIGHTS_AT_READING})


def test_who_reads_while_rights_change_is_given_what_is_allowed_when_it_comes() -> None:
    assert not run(WISH, RACED).reading
