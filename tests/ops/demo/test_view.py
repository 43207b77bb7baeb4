"""The view: lines where there is no terminal, a table that is the last, a verdict for each."""

from __future__ import annotations

import io
import json

from headgate.ops.demo.accident import Accident
from headgate.ops.demo.audience import WISHES, Listener, Told
from headgate.ops.demo.host import BrokerProcess
from headgate.ops.demo.orders import OrdersTold
from headgate.ops.demo.proof import Verdict, judge
from headgate.ops.demo.view import Picture, View, summary

LISTENERS = [Listener(wish) for wish in WISHES]


def shown(seconds: list[float]) -> list[str]:
    file = io.StringIO()
    with View(False, file) as view:
        for moment in seconds:
            view.show(Picture(int(1000 * moment), moment, LISTENERS))
    return file.getvalue().splitlines()


def test_a_line_every_four_seconds() -> None:
    lines = shown([0.5, 3.9, 4.0, 4.1, 7.9, 8.06])
    assert [line.split("  delivered")[0].strip() for line in lines] == [
        "4.0 s  published 4,000",
        "8.1 s  published 8,060",
    ]


def test_the_last_picture_is_a_table() -> None:
    file = io.StringIO()
    with View(True, file) as view:
        view.show_last(Picture(2000, 2.0, LISTENERS))
        view.say("done")
    text = file.getvalue()
    assert "published 2,000 in 2.0 s (1,000 a second)" in text
    assert "quotes WHERE price * volume > 1200000" in text
    assert text.endswith("done\n")


def test_what_came_of_the_orders() -> None:
    file = io.StringIO()
    with View(True, file) as view:
        view.orders(OrdersTold(500, 500, 0, 3, 0, True))
        assert (
            "took 500 of 500 orders, 3 of them twice, marked as redelivered; its process was killed" in file.getvalue()
        )
        assert "NOT EXACT" not in file.getvalue()
        view.orders(OrdersTold(500, 498, 2, 0, 1, False))
    assert "NOT EXACT: 2 orders are missing, 1 came twice and were not marked" in file.getvalue()


def verdicts(wanted: bytes) -> list[Verdict]:
    return [judge(listener, wanted) for listener in LISTENERS]


def test_the_verdict_of_all() -> None:
    file = io.StringIO()
    with View(True, file) as view:
        view.verdict(verdicts(b""))
        view.verdict(verdicts(b"\1"))
    text = file.getvalue()
    assert "every subscriber got exactly what it asked for" in text
    assert "1 missing (quotes 0)" in text
    assert text.endswith("NOT EXACT: see the lines above\n")


def test_what_came_out_of_order_is_said_even_where_it_is_no_fault() -> None:
    file, listener = io.StringIO(), Listener(WISHES[0])
    listener.misordered = [4, 7]
    with View(True, file) as view:
        view.verdict([judge(listener, b"", ordered=False)])
    assert file.getvalue().endswith("nothing twice; 2 came out of order, where order is not promised\n")


def test_the_summary_is_json_and_knows_the_verdict() -> None:
    picture = Picture(10, 1.0, LISTENERS)
    good = json.loads(json.dumps(summary(picture, verdicts(b""))))
    assert (good["exact"], good["published"], len(good["subscribers"])) == (True, 10, 6)
    bad = summary(picture, verdicts(b"\1"))
    assert (bad["exact"], bad["subscribers"][0]["missing"]) == (False, 1)


def test_nothing_published_has_no_rate() -> None:
    assert Picture(0, 0.0, LISTENERS).rate == 0.0


def accident() -> tuple[Accident, list[Listener]]:
    """demo-1 dies after 1,000 quotes: the first subscriber moves, the second is told of a gap, the others of none."""
    listeners = [Listener(wish, home="demo-2", broker="demo-2") for wish in WISHES]
    listeners[0].home = "demo-1"
    listeners[0].told = [Told(10.2, 0, 1300, 10.3, 10.4)]
    listeners[1].told = [Told(10.1, 2, 1100, 10.1, 10.2)]
    return Accident("demo-1", 10.0, 900, 1000, [range(990, 1000)], 10.05), listeners


def test_the_accident_and_what_came_of_it() -> None:
    file = io.StringIO()
    killed, listeners = accident()
    found = [
        judge(listener, bytes(1000) + b"\1", killed.excuse(listener, range(0), 2000)) for listener in listeners[:2]
    ]
    found += [judge(listener, b"") for listener in listeners[2:]]
    with View(True, file) as view:
        view.aftermath(killed, listeners, found)
        view.verdict(found)
    lines = file.getvalue().splitlines()
    assert lines[0] == "demo-1 was killed after 1,000 quotes:"
    assert (
        lines[1] == "  the feed published again after 0.05 s; the outcome of 10 quotes is unknown, and it was told so"
    )
    moved = "moved to demo-2; in force again after 0.30 s, next quote after 0.40 s; 1 of its quotes lost in its gap"
    assert moved in lines[2]
    assert "stayed with demo-2; in force again after 0.10 s" in lines[3]
    assert lines[4].endswith("stayed with demo-2, and was told of no gap")
    assert lines[8] == (
        "  every subscription was in force again after 0.30 s; 2 deliveries were lost, all of them in gaps that were "
        "announced"
    )
    assert lines[-1].endswith("nothing lost but what was announced, nothing more, nothing twice")
    told = json.loads(json.dumps(summary(Picture(2000, 2.0, listeners), found, killed)))
    assert (told["killed"]["broker"], told["killed"]["unknown"], told["killed"]["moved"]) == (
        "demo-1",
        10,
        ["one symbol"],
    )
    assert (told["subscribers"][0]["in_gap"], told["exact"]) == (1, True)


def test_a_subscription_that_does_not_come_back_is_said() -> None:
    file = io.StringIO()
    killed, listeners = accident()
    listeners[0].told = [Told(10.2, 0)]
    found = [judge(listener, b"", killed.excuse(listener, range(0), 2000)) for listener in listeners]
    with View(True, file) as view:
        view.aftermath(killed, listeners, found)
        view.verdict(found)
    assert "in force again no more" in file.getvalue()
    assert (
        "it was not told that its subscription is in force again" in file.getvalue() and "NOT EXACT" in file.getvalue()
    )


def test_who_is_there_and_who_is_about_to_die() -> None:
    class Dying(BrokerProcess):
        pid = 4711

    file = io.StringIO()
    killed, listeners = accident()
    brokers = [Dying(f"demo-{number}", "", []) for number in (1, 2)]
    with View(True, file) as view:
        view.brokers(brokers)
        view.brokers(brokers[:1])
        view.killed(brokers[0], killed, listeners, 10.0)
    text = file.getvalue()
    assert "2 brokers are one cluster" in text and "demo-2 listens on" in text and "a broker listens on" in text
    assert (
        "demo-1 (process 4711) is killed with SIGKILL, on purpose" in text and "1 of 6 subscribers (one symbol)" in text
    )
