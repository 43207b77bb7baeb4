"""`headgate bench spark_audit`: the audit beside pandas, on the log of a real broker in which faults were planted.

A broker, 40 subscriptions, and so many events that there are that many pairs of an event and a subscription which
asked for it. Then the broker is stopped and its log made worse: events are added that reached some of their
subscribers, others never, twice, late, without an acknowledgement, or were dropped; some reach who did not ask. The
audit is run as anybody would, and says for each subscription what it found, and for each pair what is wrong with it.
The same is computed from the rows of the log with pandas, where each condition is written a second time by hand, and
the two must not differ in anything.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from headgate.broker.core.effects import Append
from headgate.broker.daemon.log import SqliteLogStore
from headgate.protocol.aio import Tasks, connect
from headgate.protocol.data import (
    LogKind,
    LogName,
    Row,
    decode_column,
    decode_record,
    decode_row,
    encode_column,
    encode_row,
)

from ...exits import DONE
from ...jobs import missing_parts
from ..kit import Fleet, MeasurementFailed, fleet
from ..limits import AUDIT_QUIET_SECONDS, AUDIT_RUN_SECONDS_MAX, AUDIT_TRAFFIC_SECONDS_MAX

__all__ = ["COUNTS", "WISHES", "add_arguments", "compute", "run"]

STREAM = "quotes"
COUNTS = ("expected", "delivered", "lost", "announced", "unacked", "duplicate", "wrong", "late")
_LATE_SECONDS = 2
_BATCH = 500
_PLANTED_SHARE = 0.2
_WRONG_SHARE = 0.02
_SENT, _DROPPED, _LOST_ON_THE_WAY, _ACKNOWLEDGED = range(4)
_FATES: dict[str, tuple[int, ...]] = {
    "as it should": (_SENT, _ACKNOWLEDGED),
    "missing": (),
    "twice": (_SENT, _SENT, _ACKNOWLEDGED, _ACKNOWLEDGED),
    "unacknowledged": (_SENT,),
    "dropped": (_DROPPED,),
    "lost on the way": (_SENT, _LOST_ON_THE_WAY),
    "late": (_SENT, _ACKNOWLEDGED),
}
"""Fate of a planted pair -> the outcomes that the log has of it."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A subscription, and by hand what it means: of a DataFrame of events, which are for it."""

    pattern: str
    condition: str
    means: Callable[[Any], Any]


def _wishes(n: int) -> tuple[Wish, ...]:
    """Four of the forty subscriptions, with constants of this number."""

    def above(events: Any) -> Any:
        return events.price > 10 * n

    def between(events: Any) -> Any:
        return ((events.price >= 5 * n) & (events.price <= 5 * n + 40)) | (events.symbol == f"S{n}")

    def trading(events: Any) -> Any:
        here = events.topic.str.startswith(f"{STREAM}/NYSE/")
        return here & (events.symbol.str.endswith(str(n)) | ~events.halted)

    def listed(events: Any) -> Any:
        here = events.topic.str.endswith("/OTE")
        return here & (events.symbol.isin([f"S{n}", f"S{n + 1}", f"S{n + 2}"]) | (events.price < 4.5))

    return (
        Wish(STREAM, f"price > {10 * n}", above),
        Wish(STREAM, f"price BETWEEN {5 * n} AND {5 * n + 40} OR symbol = 'S{n}'", between),
        Wish(f"{STREAM}/NYSE", f"symbol LIKE '%{n}' OR NOT halted", trading),
        Wish(f"{STREAM}/*/OTE", f"symbol IN ('S{n}', 'S{n + 1}', 'S{n + 2}') OR price < 4.5", listed),
    )


WISHES = tuple(wish for n in range(10) for wish in _wishes(n))


def _columns(random: Random) -> tuple[list[str], dict[str, list[Any]]]:
    topics = [f"{STREAM}/{random.choice(('NYSE', 'ATHEX'))}/{random.choice(('OTE', 'IBM'))}" for _ in range(_BATCH)]
    prices = [random.randrange(100) if random.random() < 0.5 else random.random() * 100 for _ in range(_BATCH)]
    symbols = [f"S{random.randrange(20)}" for _ in range(_BATCH)]
    return topics, {"price": prices, "symbol": symbols, "halted": [random.random() < 0.3 for _ in range(_BATCH)]}


async def _traffic(cluster: Fleet, pairs: int, random: Random) -> None:
    """Publish until there were so many deliveries."""
    came = 0
    async with await connect(cluster.addresses[0]) as reader, await connect(cluster.addresses[0]) as writer:
        await writer.ask("schema.put", stream=STREAM, schema={"attributes": {}, "audit": True})
        subscriptions = [await reader.subscribe(wish.pattern, wish.condition) for wish in WISHES]

        async def read(subscription: Any) -> None:
            nonlocal came
            async for _ in subscription:
                came += 1

        tasks = Tasks()
        for one in subscriptions:
            tasks.start(read(one), "reading")
        try:
            async with asyncio.timeout(AUDIT_TRAFFIC_SECONDS_MAX):
                while came < pairs:
                    topics, attributes = _columns(random)
                    await writer.publish_batch(topics, attributes, [b""] * _BATCH, mode="stored")
                    await asyncio.sleep(0)
                before = -1
                while came != before:  # and what is on its way, and its acknowledgements
                    before = came
                    await asyncio.sleep(AUDIT_QUIET_SECONDS)
        except TimeoutError:
            raise MeasurementFailed("the traffic", f"brought {came:,} of {pairs:,} deliveries") from None
        finally:
            await tasks.stop()


class _Log:
    """The log of a broker that does not run: read whole, and written as the broker would."""

    def __init__(self, folder: Path, name: str) -> None:
        self._store = SqliteLogStore(folder, name)
        self._logs = {state.name: state for state in self._store.open().logs}
        self._tickets = 0

    def rows(self, kind: LogKind) -> list[Row]:
        """All rows of a kind of log."""
        log, found = self._name(kind), list[Row]()
        while found[-1:] == [] or found[-1].first + found[-1].count < self._logs[log].next:
            position = found[-1].first + found[-1].count if found else 0
            more = [decode_row(row) for row in self._store.read(log, position, 1 << 24)[0]]
            if not more:
                break
            found += more
        return found

    def append(self, kind: LogKind, row: Row) -> None:
        """Append a row."""
        log = self._name(kind)
        first = self._logs[log].next
        self._tickets += 1
        data = encode_row(replace(row, first=first))
        self._store.append([Append(self._tickets, log, data, first, row.count, row.time)])
        self._logs[log] = replace(self._logs[log], next=first + row.count)

    def close(self) -> None:
        """Close the store, so that the broker can open it."""
        self._store.close()

    def _name(self, kind: LogKind) -> LogName:
        (name,) = [name for name in self._logs if name.kind == kind]
        return name


def _events(rows: list[Row]) -> Any:
    """The events of the log as pandas has them: `sequence`, `time`, `topic`, and the attributes."""
    import pandas

    lines = []
    for row in rows:
        lengths = memoryview(row.lengths).cast("I").tolist()
        topics = row.topics.split("\n") if "\n" in row.topics else [row.topics] * row.count
        place = 0
        for number, (length, topic) in enumerate(zip(lengths, topics, strict=True)):
            attributes, _, _ = decode_record(row.records[place : place + length])
            place += length
            lines.append({"sequence": row.base + number, "time": row.time, "topic": topic, **attributes})
    return pandas.DataFrame(lines).astype({"price": "float64", "halted": "bool"})


def _deliveries(rows: list[Row]) -> Any:
    import pandas

    names = ("subscription", "sequence", "published_at", "sent_at", "outcome")
    lines: dict[str, list[Any]] = {name: [] for name in names}
    for row in rows:
        for name in names:
            lines[name] += decode_column(row.columns[name], row.count)
    return pandas.DataFrame(lines)


def _plant(log: _Log, random: Random) -> dict[str, int]:
    """Add events whose pairs have every fate; how many pairs have which."""
    events, deliveries = log.rows(LogKind.EVENTS), log.rows(LogKind.DELIVERIES)
    numbers = sorted(set(_deliveries(deliveries).subscription))
    if len(numbers) != len(WISHES):
        raise MeasurementFailed("the traffic", f"reached {len(numbers)} of {len(WISHES)} subscriptions")
    upcoming = max(row.base + row.count for row in events)
    fates: dict[str, int] = defaultdict(int)
    for row in random.sample(events[: len(events) // 2], max(1, int(_PLANTED_SHARE * len(events)))):
        # Of a time in the first half, so that nothing of it is near the end of the log.
        added = replace(row, base=upcoming, producer="", epoch=0, number=0)
        upcoming += row.count
        log.append(LogKind.EVENTS, added)
        frame = _events([added])
        lines: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
        for number, wish in zip(numbers, WISHES, strict=True):
            for sequence, means in zip(frame.sequence.tolist(), wish.means(frame).tolist(), strict=True):
                fate = random.choice(list(_FATES)) if means else "as it should"
                if not means and random.random() >= _WRONG_SHARE:
                    continue
                fates[fate if means else "not asked for"] += 1
                sent = row.time + (5_000_000 if fate == "late" else 2_000)
                line = {"subscription": number, "sequence": sequence, "sent_at": sent, "published_at": row.time}
                for outcome in _FATES[fate]:
                    last = {"outcome": outcome, **({"acked_at": sent} if outcome == _ACKNOWLEDGED else {})}
                    lines[outcome == _ACKNOWLEDGED].append({**line, **last})
        for some in lines.values():
            for start in range(0, len(some), _BATCH):
                piece = some[start : start + _BATCH]
                columns = {name: encode_column([line[name] for line in piece]) for name in piece[0]}
                log.append(LogKind.DELIVERIES, replace(deliveries[0], count=len(piece), columns=columns))
    return dict(fates)


def compute(events: Any, deliveries: Any, numbers: list[int]) -> tuple[Any, Any]:
    """With pandas: a row of COUNTS for each subscription, and a row for each pair that needs looking into."""
    import pandas

    wanted = [
        pandas.DataFrame({"subscription": number, "sequence": events.sequence[wish.means(events)], "matched": True})
        for number, wish in zip(numbers, WISHES, strict=True)
    ]
    key = ["subscription", "sequence"]
    met = deliveries.groupby([*key, "outcome"]).size().unstack(fill_value=0)
    met = met.reindex(columns=range(4), fill_value=0).reset_index()
    first = deliveries[deliveries.outcome == _SENT].groupby(key, as_index=False).sent_at.min()
    pairs = pandas.concat(wanted).merge(met, on=key, how="outer").merge(first, on=key, how="left")
    pairs = pairs.merge(events[["sequence", "time"]], on="sequence", how="left")
    pairs["matched"] = pairs.matched.notna()
    pairs[list(range(4))] = pairs[list(range(4))].fillna(0).astype(int)
    received = (pairs[_SENT] - pairs[_LOST_ON_THE_WAY]).clip(lower=0)
    came, told = received > 0, (pairs[_DROPPED] > 0) | (pairs[_LOST_ON_THE_WAY] > 0)
    lost = pairs.matched & ~came
    said = pandas.DataFrame(
        {
            "subscription": pairs.subscription,
            "expected": pairs.matched,
            "delivered": came,
            "lost": lost,
            "announced": lost & told,
            "unacked": came & (pairs[_ACKNOWLEDGED] == 0),
            "duplicate": (received - 1).clip(lower=0),
            "wrong": ~pairs.matched & came,
            "late": came & (pairs.sent_at - pairs.time > _LATE_SECONDS * 1e6),
        }
    )
    pairs["kind"] = "unacknowledged"
    pairs.loc[received > 1, "kind"] = "duplicate"
    pairs.loc[said.wrong, "kind"] = "wrong"
    pairs.loc[lost, "kind"] = "lost"
    found = pairs[lost | said.wrong | said.unacked | (received > 1)]
    return said.groupby("subscription").sum().astype(int).reset_index(), found[[*key, "kind"]]


def _audit(cluster: Fleet, folder: Path) -> tuple[dict[str, Any], Any, Any]:
    """What `headgate audit` says of the stream, of each subscription, and of each pair."""
    import pandas

    command = [sys.executable, "-m", "headgate.ops.cli", "audit", "--server", cluster.addresses[0], "--stream", STREAM]
    words = ("--settle", "2", "--boundary", "0", "--late", str(_LATE_SECONDS), "--json", "--parquet", str(folder))
    done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=AUDIT_RUN_SECONDS_MAX)
    if not done.stdout:
        raise MeasurementFailed("the audit", done.stderr.strip()[-500:])
    (stream,) = json.loads(done.stdout.splitlines()[-1])["streams"]
    lines, findings = (pandas.read_parquet(folder / name) for name in ("subscriptions", "findings"))
    lines["subscription"] = lines.subscription_id.str.rpartition("-")[2].astype(int)
    findings["subscription"] = findings.subscription_id.str.rpartition("-")[2].astype(int)
    findings["sequence"] = findings.event_id.str.rpartition(".")[2].astype(int)
    return stream, lines, findings


async def _measure(pairs: int, seed: int, folder: Path) -> tuple[int, list[str]]:
    random = Random(seed)
    async with fleet(1, folder) as cluster:
        (broker,) = cluster.members
        await _traffic(cluster, int(pairs / (1 + _PLANTED_SHARE)), random)
        broker.end()
        log = _Log(folder / broker.name, broker.name)
        try:
            fates = _plant(log, random)
            events, deliveries = _events(log.rows(LogKind.EVENTS)), _deliveries(log.rows(LogKind.DELIVERIES))
        finally:
            log.close()
        broker.start()
        await cluster.together()
        begun = time.monotonic()
        stream, lines, findings = await asyncio.to_thread(_audit, cluster, folder / "verdict")
        seconds = time.monotonic() - begun
    numbers = sorted(set(deliveries.subscription))
    ours, found = compute(events, deliveries, numbers)
    differences = []
    for name in COUNTS:
        theirs = dict(zip(lines.subscription, lines[name], strict=True))
        for number, count in zip(ours.subscription, ours[name], strict=True):
            if theirs.get(number) != count:
                said = f"audit {theirs.get(number)}, pandas {count}"
                differences.append(f"subscription {number}, {WISHES[numbers.index(number)].condition}: {name}: {said}")
    both = [
        set(one[["subscription", "sequence", "kind"]].itertuples(index=False, name=None)) for one in (findings, found)
    ]
    differences += [f"only the audit: {one}" for one in sorted(both[0] - both[1])[:10]]
    differences += [f"only pandas: {one}" for one in sorted(both[1] - both[0])[:10]]
    total = int(ours.expected.sum() + ours.wrong.sum())
    print(
        f"{len(events):,} events, {len(numbers)} subscriptions, {total:,} pairs, {len(deliveries):,} lines in the log"
    )
    print("planted: " + ", ".join(f"{count:,} {fate}" for fate, count in sorted(fates.items())))
    print("audit:   " + ", ".join(f"{stream[name]:,} {name}" for name in COUNTS) + f"; {seconds:.0f} s")
    print("pandas:  " + ", ".join(f"{int(ours[name].sum()):,} {name}" for name in COUNTS))
    said = f"{len(both[0]):,} by the audit, {len(both[1]):,} by pandas, {len(both[0] ^ both[1])} differ"
    print(f"pairs to look into: {said}")
    return total, differences


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options: how many pairs, and the seed."""
    parser.add_argument("--pairs", type=int, default=200_000, metavar="N", help="about so many pairs (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="where chance begins (%(default)s)")


def run(arguments: argparse.Namespace) -> int:
    """Plant faults, run the audit, compute the same with pandas, and compare."""
    if missing := missing_parts():
        print(f"not measured: install {missing}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="headgate-audit-") as folder:
        try:
            total, differences = asyncio.run(_measure(arguments.pairs, arguments.seed, Path(folder)))
        except MeasurementFailed as failure:
            print(f"failed: {failure}", file=sys.stderr)
            return 1
    for text in differences:
        print(text, file=sys.stderr)
    print(f"{total:,} pairs: " + ("the promise was BROKEN" if differences else "audit and pandas say the same of each"))
    return 1 if differences else DONE
