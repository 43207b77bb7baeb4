"""Merging logs: the order of each log, of time, and of every producer; and no more waits than a chunk of each log."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.protocol.client.merging import Merge, Piece
from headgate.protocol.data import LogName, Row

LOGS = [LogName(broker, 1, 0, "q") for broker in ("ann", "bob", "eve")]


def row(time: int, producer: str, number: int) -> Row:
    return Row(number, 1, time, "o", number, b"", "q", b"", {}, True, b"", producer, 1, number)


@given(st.data())
def test_whoever_moves_between_brokers_is_read_in_its_own_order(draw: st.DataObject) -> None:
    logs: list[list[Row]] = [[], [], []]
    numbers = dict.fromkeys("pq", 0)
    skews = [draw.draw(st.sampled_from([0, 0, 3])) for _ in LOGS]
    clock, home = 0, dict[str, int]()
    for _ in range(draw.draw(st.integers(0, 40))):
        clock += draw.draw(st.integers(0, 3))
        producer = draw.draw(st.sampled_from(["p", "q", ""]))
        at = draw.draw(st.integers(0, 2))
        # A producer needs longer to move than clocks differ, as it waits for a broker that is gone.
        clock += 4 if producer and home.get(producer, at) != at else 0
        home[producer] = at
        logs[at].append(row(clock + skews[at], producer, numbers.get(producer, 0)))
        if producer:
            numbers[producer] += 1
    merge, read, chunk = Merge(), [0, 0, 0], draw.draw(st.integers(1, 5))
    times = [log[0].time if log else 0 for log in logs]
    shown: list[tuple[LogName, Row]] = []
    while True:
        behind = {LOGS[at]: times[at] for at in range(3) if read[at] < len(logs[at])}
        shown += [(piece.name, one) for piece in merge.drain(behind) for one in piece.rows]
        if not behind:
            break
        assert sum(read) - len(shown) <= 3 * chunk, "more waits than a chunk of each log"
        at = LOGS.index(min(behind, key=lambda name: (behind[name], name)))
        rows = logs[at][read[at] : read[at] + chunk]
        merge.add(Piece(LOGS[at], rows))
        read[at] += len(rows)
        times[at] = rows[-1].time
    for at, name in enumerate(LOGS):
        assert [one for log, one in shown if log == name] == logs[at]
    for producer in "pq":
        order = [one.number for _, one in shown if one.producer == producer]
        assert order == sorted(order) and len(order) == numbers[producer]


def test_a_producer_s_lower_number_goes_first_whatever_the_clocks_say() -> None:
    merge = Merge()
    merge.add(Piece(LOGS[0], [row(10, "p", 5)]))
    merge.add(Piece(LOGS[1], [row(12, "", 0), row(20, "p", 3)]))
    assert [(piece.name, one.number) for piece in merge.drain({}) for one in piece.rows] == [
        (LOGS[1], 0),
        (LOGS[1], 3),
        (LOGS[0], 5),
    ]


def test_a_clock_that_was_put_back_does_not_change_the_order_of_a_log() -> None:
    merge = Merge()
    merge.add(Piece(LOGS[0], [row(10, "", 1), row(4, "", 2)]))
    merge.add(Piece(LOGS[1], [row(7, "", 3)]))
    assert [one.number for piece in merge.drain({}) for one in piece.rows] == [3, 1, 2]
