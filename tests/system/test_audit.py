"""The whole audit with a real broker: clean as long as nothing is planted, and what is planted in its log is found."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headgate.broker.core.effects import Append
from headgate.broker.daemon.log import SqliteLogStore
from headgate.ops.cli import main
from headgate.protocol.blocking import connect_blocking
from headgate.protocol.data import LogKind, LogName, Row, decode_column, decode_row, encode_column, encode_row
from tests.support.local_spark import local_spark
from tests.support.served_broker import ServedBroker, served_broker
from tests.system.processes import COMMAND, environment

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

WISHES = ("price > 4", "price BETWEEN 2 AND 5 OR symbol = 'S7'", "symbol LIKE 'S%' AND NOT halted", "")
EVENTS = 100


@pytest.fixture(scope="module", autouse=True)
def spark() -> Iterator[Any]:
    with local_spark() as session:
        yield session


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[ServedBroker]:
    with served_broker(tmp_path, "--name", "ann") as served:
        yield served


def audit(broker: ServedBroker) -> tuple[int, dict[str, Any]]:
    """The exit code, and what was said of the stream. Audits that are run in one process share one Java machine."""
    words = ("audit", "--server", broker.address, "--settle", "2", "--boundary", "0", "--late", "2", "--json")
    with redirect_stdout(io.StringIO()) as told:
        code = main(words)
    (stream,) = json.loads(told.getvalue().splitlines()[-1])["streams"]
    return code, stream


def said(broker: ServedBroker, *words: str) -> subprocess.CompletedProcess[str]:
    """What a person sees."""
    command = [*COMMAND, "audit", "--server", broker.address, *words]
    given = environment(PYTHONWARNINGS="default")
    return subprocess.run(command, env=given, capture_output=True, text=True, timeout=300, check=False)


FROZEN = """
import os, signal, sys, headgate
with headgate.connect_blocking(sys.argv[1], name="frozen") as client:
    client.subscribe("quotes")
    print("subscribed", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
"""


def test_what_a_frozen_client_never_took_is_not_called_exact(broker: ServedBroker) -> None:
    command = [sys.executable, "-c", FROZEN, broker.address]
    with connect_blocking(broker.address) as client:
        client.ask("schema.put", stream="quotes", schema={"audit": True})
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment()) as frozen:
            try:
                assert frozen.stdout is not None and frozen.stdout.readline() == b"subscribed\n"
                alive = client.subscribe("quotes")  # takes far less than half of its window
                for number in range(200):
                    client.publish("quotes/NYSE/OTE", {"price": number}, mode="stored")
                assert sum(len(events) for events in alive.batches(2.0)) == 200
                for _ in range(4):  # it is asked after two seconds
                    assert not alive.take(1.0)
            finally:
                frozen.kill()
        found = said(broker, "--stream", "quotes")
        assert found.returncode == 1, found.stderr
        assert found.stdout.splitlines()[-1] == "NOT EXACT: 200 sent and never acknowledged"
        assert "WARN" not in found.stderr and "log4j" not in found.stderr and "incubator" not in found.stderr
        assert len(found.stderr.splitlines()) <= 1, "at most that it waits"
        with redirect_stdout(io.StringIO()) as told:
            code = main(["audit", "--server", broker.address, "--accept-unacknowledged", "--settle", "0"])
        assert code == 0 and "exact but for what was accepted: 200 sent" in told.getvalue()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--stream", "typo"), "stream 'typo' is not known"),
        (("--stream", "memory"), "stream 'memory' is in memory"),
        (("--stream", "stored"), "stream 'stored' is stored and not audited"),
        (("--stream", "quotes"), "nothing was published to quotes"),
    ],
)
def test_where_there_is_nothing_to_judge_nothing_is_called_exact(
    broker: ServedBroker, words: tuple[str, ...], text: str
) -> None:
    with connect_blocking(broker.address) as client:
        for stream, schema in {
            "memory": {"attributes": {}},
            "stored": {"durability": "stored"},
            "quotes": {"audit": True},
        }.items():
            client.ask("schema.put", stream=stream, schema=schema)
    found = said(broker, *words)
    assert (found.returncode, found.stdout) == (2, "") and text in found.stderr and len(found.stderr.splitlines()) == 1


def traffic(broker: ServedBroker) -> int:
    """Some wishes, and events one by one, a row each; how many deliveries came."""
    with connect_blocking(broker.address) as reader, connect_blocking(broker.address) as writer:
        writer.ask("schema.put", stream="quotes", schema={"attributes": {}, "audit": True})
        subscriptions = [reader.subscribe("quotes", where or None) for where in WISHES]
        for number in range(EVENTS):
            row = {"price": number % 10, "symbol": f"S{number % 9}", "halted": number % 3 == 0}
            writer.publish("quotes/NYSE/OTE", row, b"", mode="stored")
        wanted = sum(expected(where) for where in WISHES)
        came = sum(len(events) for one in subscriptions for events in one.batches(2.0))
    assert came == wanted
    return wanted


def expected(where: str) -> int:
    from headgate.matching import evaluate, parse_condition

    rows = [{"price": n % 10, "symbol": f"S{n % 9}", "halted": n % 3 == 0} for n in range(EVENTS)]
    return EVENTS if not where else sum(evaluate(parse_condition(where), row) is True for row in rows)


class Planter:
    """Writes into the log of a broker that is not running, as the broker would have."""

    def __init__(self, folder: Path) -> None:
        self.store = SqliteLogStore(folder, "ann")
        self.logs = {state.name: state for state in self.store.open().logs}
        self.ticket = 0

    def rows(self, kind: LogKind) -> list[Row]:
        log = self.log(kind)
        return [decode_row(row) for row in self.store.read(log, 0, 1 << 24)[0]]

    def log(self, kind: LogKind) -> LogName:
        (name,) = [name for name in self.logs if name.kind == kind]
        return name

    def append(self, kind: LogKind, row: Row) -> None:
        log = self.log(kind)
        first = self.logs[log].next
        self.ticket += 1
        self.store.append([Append(self.ticket, log, encode_row(replace(row, first=first)), first, row.count, row.time)])
        self.logs[log] = replace(self.logs[log], next=first + row.count)


def lines(rows: list[Row]) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Each line of the log of deliveries that says `sent`, with its row."""
    for row in rows:
        columns = {name: decode_column(column, row.count) for name, column in row.columns.items()}
        for place in range(row.count):
            if columns["outcome"][place] == 0:
                yield row, {name: values[place] for name, values in columns.items()}


def delivery(row: Row, line: dict[str, Any]) -> Row:
    """A row with that line alone."""
    return replace(row, count=1, columns={name: encode_column([value]) for name, value in line.items()})


def test_what_is_planted_is_found_and_nothing_else(broker: ServedBroker) -> None:
    wanted = traffic(broker)
    code, clean = audit(broker)
    assert code == 0 and clean["clean"], clean
    assert (clean["events"], clean["expected"], clean["delivered"], clean["lost"]) == (EVENTS, wanted, wanted, 0)
    broker.stop()
    planter = Planter(broker.folder / "data")
    events, deliveries = planter.rows(LogKind.EVENTS), planter.rows(LogKind.DELIVERIES)
    row, line = next(iter(lines(deliveries)))
    planter.append(LogKind.DELIVERIES, delivery(row, line))  # the same again
    by_number = {event.base: event for event in events}
    first_wish = min(one["subscription"] for _, one in lines(deliveries))
    low = by_number[min(by_number) + 1]  # its price is 1
    wrong = {**line, "subscription": first_wish, "sequence": low.base, "published_at": low.time, "outcome": 0}
    planter.append(LogKind.DELIVERIES, delivery(row, wrong))
    nine = by_number[min(by_number) + 9]  # its price is 9: three of the wishes are for it
    planter.append(LogKind.EVENTS, replace(nine, base=nine.base + 1_000))  # nobody got this one
    planter.append(LogKind.EVENTS, replace(nine, base=nine.base + 2_000))  # and this one came, but late
    for number, (row, one) in [
        (nine.base + 2_000, found) for found in lines(deliveries) if found[1]["sequence"] == nine.base
    ]:
        late = {**one, "sequence": number, "sent_at": nine.time + 5_000_000}
        planter.append(LogKind.DELIVERIES, delivery(row, late))
        planter.append(LogKind.DELIVERIES, delivery(row, {**late, "outcome": 3, "acked_at": nine.time + 6_000_000}))
    planter.store.close()
    broker.start()
    code, found = audit(broker)
    copies = sum(one["sequence"] == nine.base for _, one in lines(deliveries))
    assert code == 1 and not found["clean"] and found["events"] == EVENTS + 2
    assert (found["duplicate"], found["wrong"], found["lost"], found["late"]) == (1, 1, copies, copies), found
    kinds = {one["kind"]: one for one in found["findings"]}
    assert sorted(kinds) == ["duplicate", "lost", "wrong"] and kinds["wrong"]["event"].endswith(f".{low.base}")
    assert found["expected"] == wanted + 2 * copies and found["announced"] == 0


def test_documents_are_audited_by_their_structure(broker: ServedBroker) -> None:
    """XML, which Spark's XPath judges, JSON and namespaces, which we do; one that nobody got is planted."""
    documents: list[Any] = [
        "<bib><book id='7'><title>x</title></book></bib>",
        "<bib><book id='8'/><title>x</title></bib>",
        {"bib": {"book": [{"title": "x"}, {"author": "y"}]}},
        '<b:bib xmlns:b="urn:b"><b:book><b:title/></b:book></b:bib>',
        {"bib": {"book": "x"}, "title": "x"},
    ]
    with connect_blocking(broker.address) as reader, connect_blocking(broker.address) as writer:
        writer.ask("schema.put", stream="library", schema={"audit": True})
        subscription = reader.subscribe("library", "price > 1 AND XPATH '/bib/book/title'")
        for price in (1, 2):
            for document in documents:
                writer.publish("library", {"price": price}, document=document, mode="stored")
        got = [event for events in subscription.batches(2.0) for event in events]
        assert len(got) == 3
    broker.stop()
    planter = Planter(broker.folder / "data")
    missed = planter.rows(LogKind.EVENTS)[5]  # the first one of price 2
    planter.append(LogKind.EVENTS, replace(missed, base=missed.base + 1_000))
    planter.store.close()
    broker.start()
    code, found = audit(broker)
    assert (code, found["expected"], found["delivered"]) == (1, 4, 3), found
    assert (found["lost"], found["wrong"], found["duplicate"], found["unacked"]) == (1, 0, 0, 0), found
    (finding,) = found["findings"]
    assert finding["kind"] == "lost" and finding["event"].endswith(f".{missed.base + 1_000}")
    assert found["left_out"] == 2, "an audited stream verifies, so brokers believe no filter"


def test_a_durable_subscription_is_owed_events_until_it_acknowledges_them(broker: ServedBroker) -> None:
    with connect_blocking(broker.address) as client:
        client.ask("schema.put", stream="orders", schema={"audit": True})
        subscription = client.subscribe("orders", "total > 2", durable="mailer")
        client.publish_batch("orders", {"total": [float(total) for total in range(10)]}, [b""] * 10, mode="stored")
        events = [event for events in subscription.batches(2.0) for event in events]
        assert len(events) == 7
        for event in events[:3]:
            assert event.ack(wait=True)
        subscription.close()
        again = client.subscribe("", durable="mailer")
        assert sum(event.redelivered for events in again.batches(1.0) for event in events) == 4
        client.ask("durable_set", name="mailer", where="total > 100")
        code, stream = audit(broker)
        (line,) = stream["lines"]
        assert (code, line["delivered"], line["expected"], line["duplicate"], line["wrong"]) == (0, 7, 0, 0, 0)
        client.ask("durable_set", name="mailer", where="")
        client.publish_batch("orders", {"total": [1.0, 2.0]}, [b""] * 2, mode="stored")
        code, stream = audit(broker)
        (line,) = stream["lines"]
        assert (code, line["expected"], line["waiting"], line["lost"]) == (0, 2, 2, 0)
