"""`sub --durable` as a process: what it printed it has acknowledged when it ends in order; what a killed one did not
acknowledge comes again, marked.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.system.processes import COMMAND, Broker, environment, running_broker, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with running_broker(tmp_path) as broker:
        said(broker, "schema", "put", "orders", '{"durability": "stored"}')
        yield broker


def said(broker: Broker, *words: str) -> str:
    """What a verb prints."""
    command = [*COMMAND, *words, "--server", broker.address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment(), check=True)
    return done.stdout


def row(broker: Broker) -> dict[str, Any]:
    (one,) = json.loads(said(broker, "durable", "list", "--json"))
    return dict(one)


def publish(broker: Broker, *numbers: int) -> None:
    lines = "".join(json.dumps({"topic": "orders/web", "attrs": {"number": number}}) + "\n" for number in numbers)
    command = [*COMMAND, "pub", "--jsonl", "-", "--mode", "stored", "--server", broker.address]
    subprocess.run(command, input=lines.encode(), env=environment(), check=True, capture_output=True, timeout=60)


class Taker:
    """`headgate sub --durable desk`, running."""

    def __init__(self, broker: Broker, *words: str) -> None:
        self._file = broker.folder / f"taken-{len(list(broker.folder.glob('taken-*')))}"
        self._errors = self._file.with_suffix(".errors")
        command = [*COMMAND, "sub", "orders", "--durable", "desk", "--json", "--server", broker.address, *words]
        with self._file.open("wb") as output, self._errors.open("wb") as errors:
            self.process = subprocess.Popen(command, stdout=output, stderr=errors, env=environment())
        wait_until(lambda: "subscribed" in self._errors.read_text())

    @property
    def taken(self) -> list[tuple[int, bool]]:
        text = self._file.read_text()
        lines = text[: text.rfind("\n") + 1].splitlines()  # the last one is cut off where it was killed
        return [(one["attrs"]["number"], one["redelivered"]) for one in map(json.loads, lines)]

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(30)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["TERM", "INT"])
def test_a_stop_in_order_leaves_nothing_to_come_again(broker: Broker, number: signal.Signals) -> None:
    taker = Taker(broker)
    publish(broker, *range(50))
    wait_until(lambda: len(taker.taken) == 50)
    assert taker.end(number) == 0
    publish(broker, 50, 51)
    following = Taker(broker, "--count", "2")
    assert following.process.wait(30) == 0
    assert following.taken == [(50, False), (51, False)]
    assert [one for one, _ in taker.taken] == list(range(50)) and not any(again for _, again in taker.taken)


def test_who_is_killed_goes_on_where_it_was(broker: Broker) -> None:
    taken: list[tuple[int, bool]] = []
    for round_number in range(4):
        taker = Taker(broker)
        publish(broker, *range(100 * round_number, 100 * round_number + 100))
        wait_until(lambda taker=taker: len(taker.taken) >= 50)  # type: ignore[misc]  # bound now
        taker.end(signal.SIGKILL)
        taken += taker.taken
    last = Taker(broker)
    wait_until(lambda: row(broker)["waiting"] == row(broker)["unacked"] == 0)
    assert last.end(signal.SIGTERM) == 0
    taken += last.taken
    assert {number for number, _ in taken} == set(range(400))
    first_times = [number for number, again in taken if not again]
    assert len(first_times) == len(set(first_times)), "what comes twice is marked"


def test_what_is_shared_goes_to_one_of_them(broker: Broker) -> None:
    takers = [Taker(broker, "--sharing", "shared") for _ in range(3)]
    publish(broker, *range(300))
    wait_until(lambda: sum(len(taker.taken) for taker in takers) == 300)
    assert [taker.end(signal.SIGTERM) for taker in takers] == [0, 0, 0]
    assert sorted(number for taker in takers for number, _ in taker.taken) == list(range(300))


def test_what_has_not_moved_is_settled_and_not_printed(broker: Broker) -> None:
    taker = Taker(broker, "--where", "DELTA(number) > 5")
    publish(broker, 10, 16, 21, 25, 30, 25, 19, 13, 8)
    wait_until(lambda: len(taker.taken) == 5)
    wait_until(lambda: row(broker)["waiting"] == row(broker)["unacked"] == 0)
    assert taker.end(signal.SIGTERM) == 0
    assert [number for number, _ in taker.taken] == [10, 16, 25, 19, 13]
    following = Taker(broker, "--where", "DELTA(number) > 5", "--count", "2")
    publish(broker, 14, 15, 20)
    assert following.process.wait(30) == 0 and following.taken == [(14, False), (20, False)]


def test_dead_letters_are_shown_and_handed_out_again(broker: Broker) -> None:
    taker = Taker(broker, "--max-deliver", "1", "--ack-wait", "1")
    taker.process.send_signal(signal.SIGSTOP)
    publish(broker, 7)
    wait_until(lambda: row(broker)["dead"] == 1)
    taker.process.kill()
    taker.process.wait(30)
    (shown,) = json.loads(said(broker, "dead", "show", "desk", "--json"))
    assert (shown["attrs"], shown["topic"], shown["delivered"]) == ({"number": 7}, "orders/web", 1)
    said(broker, "dead", "replay", "desk", "--id", shown["id"])
    following = Taker(broker, "--count", "1")
    assert following.process.wait(30) == 0 and [number for number, _ in following.taken] == [7]
    assert row(broker)["dead"] == 0
