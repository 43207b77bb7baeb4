"""Audit history: what a log of subscriptions leaves open, read in chunks, damage or not."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.cause import Cause
from headgate.broker.core.clients.audit import Left, open_subscriptions
from headgate.broker.core.effects import Effect, ReadRows
from headgate.broker.core.inputs import Opened, RowsRead
from headgate.broker.core.log import Log
from headgate.broker.core.log_state import LogState
from headgate.broker.core.timers import Timers
from headgate.protocol.data import LogKind, LogName, Row, encode_column, encode_row

NAME = LogName("ann", 1, int(LogKind.SUBSCRIPTIONS), "quotes")


def change(first: int, home: str, identity: int, action: str) -> bytes:
    line = {"subscription": identity, "subscriber": "s", "pattern": "quotes", "exact": False, "condition": ""}
    columns = {name: encode_column([value]) for name, value in (line | {"spark": "", "action": action}).items()}
    return encode_row(Row(first, 1, 5, "", 0, b"", home, b"", columns, False, b""))


def left_open(rows: list[bytes], chunk: int, damage: Any = ()) -> Left:
    """What is told of a log with these rows, read so many at a time; rows in `damage` cannot be read."""
    effects: list[Effect] = []
    log, told = Log("ann", effects, Timers(), Cause("ann")), []
    log.opened(Opened(1, [LogState(NAME, 0, len(rows), 1, 1, 1)]))
    open_subscriptions(log, log.logs[NAME], lambda held, left: told.append(left))
    while effects:
        (asked,) = effects
        assert isinstance(asked, ReadRows)
        effects.clear()
        at = asked.position
        if at in damage:
            log.take_lookup(asked.ticket)(RowsRead(asked.ticket, [], at + 1, "damaged"), 0.0)
        else:
            some = rows[at : at + chunk]
            log.take_lookup(asked.ticket)(RowsRead(asked.ticket, some, at + len(some)), 0.0)
    (left,) = told
    return left


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 3), st.sampled_from(["subscribe", "unsubscribe", "gap"]))),
    st.integers(1, 4),
)
def test_what_began_and_did_not_end_is_open_however_it_is_read(changes: list[tuple[str, int, str]], chunk: int) -> None:
    rows = [change(first, *one) for first, one in enumerate(changes)]
    wanted: dict[tuple[str, int], None] = {}
    for home, identity, action in changes:
        if action == "subscribe":
            wanted[home, identity] = None
        elif action == "unsubscribe":
            wanted.pop((home, identity), None)
    assert left_open(rows, chunk).keys() == wanted.keys()


def test_damage_takes_no_more_than_what_it_hit() -> None:
    rows = [change(0, "a", 1, "subscribe"), b"\xc1", change(2, "a", 2, "subscribe"), change(3, "a", 3, "subscribe")]
    assert left_open(rows, 1, damage={2}).keys() == {("a", 1), ("a", 3)}
