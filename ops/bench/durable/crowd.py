"""A process of durable clients, to be killed: it takes events, writes each into its journal, and acknowledges it.

    python -m headgate.ops.bench.durable.crowd PLAN

The plan is JSON: where the brokers are, where the journal is, and the subscriptions to take part in, by their names
alone. SIGTERM ends it in order. Now and then a client refuses an event, or thinks for longer than `ack_wait`.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

from headgate.protocol.aio import Client, Event, Subscription, Tasks, connect
from headgate.protocol.errors import HeadgateError
from headgate.protocol.messages import Gap

from ..kit import SOURCES, MeasurementFailed
from ..limits import KILLS_RETRY_SECONDS, START_SECONDS_MAX
from .ledger import Entry, Kind, Wish

__all__ = ["Crowd", "main"]

_CONNECTIONS = 3
_AGAIN_SECONDS = 0.2
_NAK_SHARE = 0.01
_NAK_SECONDS_MAX = 0.3
_DAWDLE_SHARE = 0.002
_UNDER_WAY = 64


class Crowd:
    """The process, over all its lives, as whoever kills it sees it."""

    def __init__(self, number: int, wishes: Sequence[Wish], addresses: Sequence[str], folder: Path, seed: int) -> None:
        self.number = number
        self.lives = 0
        self._wishes = wishes
        self._addresses = addresses
        self._folder = folder
        self._seed = seed
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def _title(self) -> str:
        return f"crowd-{self.number}-{self.lives}"

    @property
    def journals(self) -> list[Path]:
        """One of each life."""
        return [self._folder / f"crowd-{self.number}-{life}.journal" for life in range(1, self.lives + 1)]

    def start(self) -> None:
        """Start it."""
        self.lives += 1
        plan = {
            "seed": self._seed * 1000 + self.number * 100 + self.lives,
            "name": f"crowd-{self.number}",
            "journal": str(self.journals[-1]),
            "addresses": list(self._addresses),
            "first": self.number + self.lives,
            "wishes": [asdict(wish) for wish in self._wishes],
        }
        command = [sys.executable, "-m", "headgate.ops.bench.durable.crowd", json.dumps(plan)]
        path = os.pathsep.join([str(SOURCES), *filter(None, [os.environ.get("PYTHONPATH")])])
        with (self._folder / f"{self._title}.log").open("wb") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=os.environ | {"PYTHONPATH": path},
                start_new_session=True,
            )

    def kill(self) -> None:
        """SIGKILL; returns when it is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def end(self) -> None:
        """SIGTERM. Raises MeasurementFailed with its last words when it does not end in order."""
        assert self._process is not None, "it was started"
        self._process.terminate()
        try:
            code = self._process.wait(START_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            code = -signal.SIGKILL
        words = self.words()
        if code or "Traceback" in words:
            raise MeasurementFailed(self._title, f"ended with {code}: {words[-1500:]}")

    def words(self) -> str:
        """What this life wrote to its log."""
        return (self._folder / f"{self._title}.log").read_text("utf-8", "replace")


class _Journal:
    """Entries that survive the death of this process."""

    def __init__(self, place: str) -> None:
        self._file = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, kind: Kind, wish: Wish, events: Sequence[Event]) -> None:
        """One entry for each event."""
        lines = [
            Entry(kind, wish.number, int.from_bytes(one.body, "big"), one.delivery, one.delivery_count).packed()
            for one in events
        ]
        os.write(self._file, b"".join(lines))

    def gap(self, wish: Wish, count: int) -> None:
        """So many were announced as lost."""
        os.write(self._file, Entry(Kind.GAP, wish.number, count, 0, 0).packed())


class _Member:
    """One client of one subscription."""

    def __init__(
        self, wish: Wish, client: Client, tasks: Tasks, journal: _Journal, random: Random, told: Counter[str]
    ) -> None:
        self._wish = wish
        self._client = client
        self._tasks = tasks
        self._journal = journal
        self._random = random
        self._told = told
        self._room = asyncio.Semaphore(_UNDER_WAY)

    async def take_part(self) -> None:
        """Until the process ends."""
        while True:
            try:
                takeover = self._wish.sharing == "exclusive" and self._random.random() < 0.5
                async with await self._client.subscribe(
                    "", durable=self._wish.name, takeover=takeover, on_gap=self._missed
                ) as subscription:
                    async for events in subscription.batches():
                        await self._take(subscription, events)
            except HeadgateError as error:
                self._note(error)
                await asyncio.sleep(_AGAIN_SECONDS)

    def _note(self, error: HeadgateError) -> None:
        self._told[f"{type(error).__name__}: {error}"[:200]] += 1

    def _missed(self, gap: Gap) -> None:
        self._journal.gap(self._wish, gap.count)

    async def _take(self, subscription: Subscription, events: list[Event]) -> None:
        wish, random = self._wish, self._random
        self._journal.write(Kind.HANDED, wish, events)
        if random.random() < _DAWDLE_SHARE:
            await asyncio.sleep(1.5 * min(wish.ack_wait, 4.0))
        kept: list[Event] = []
        for event in events:
            if event.delivery_count == 1 and random.random() < _NAK_SHARE:
                await event.nak(random.uniform(0.0, _NAK_SECONDS_MAX))
            else:
                kept.append(event)
        if not kept:
            return
        self._journal.write(Kind.SAID, wish, kept)
        if wish.how == "cumulative":
            if await subscription.ack_all(events[-1], wait=True):
                self._journal.write(Kind.CONFIRMED, wish, kept)
        elif wish.how == "batch":
            counted = await asyncio.gather(*(event.ack(wait=True) for event in kept))
            confirmed = [event for event, counts in zip(kept, counted, strict=True) if counts]
            self._journal.write(Kind.CONFIRMED, wish, confirmed)
        else:
            for event in kept:
                await self._room.acquire()
                self._tasks.start(self._ack(event), "acknowledging")
                await asyncio.sleep(0)

    async def _ack(self, event: Event) -> None:
        try:
            if await event.ack(wait=True):
                self._journal.write(Kind.CONFIRMED, self._wish, [event])
        except HeadgateError as error:
            self._note(error)
        finally:
            self._room.release()


async def _run(plan: dict[str, Any]) -> None:
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    random, told = Random(plan["seed"]), Counter[str]()
    journal = _Journal(plan["journal"])
    addresses, tasks = plan["addresses"], Tasks()
    clients = []
    try:
        for number in range(_CONNECTIONS):
            first = (plan["first"] + number) % len(addresses)
            around = ",".join(addresses[first:] + addresses[:first])
            name = f"{plan['name']}-{number}"
            clients.append(
                await connect(around, name=name, retry_seconds=KILLS_RETRY_SECONDS, wait_seconds=KILLS_RETRY_SECONDS)
            )
        for place, words in enumerate(plan["wishes"]):
            wish = Wish(**words)
            member = _Member(wish, clients[place % len(clients)], tasks, journal, random, told)
            tasks.start(member.take_part(), wish.name)
        await over.wait()
    finally:
        await tasks.stop()
        for text, count in told.items():
            print(f"{count} times: {text}", file=sys.stderr)
        for client in clients:
            await client.close()


def main(words: Sequence[str] | None = None) -> int:
    """`python -m headgate.ops.bench.durable.crowd`."""
    (plan,) = sys.argv[1:] if words is None else words
    asyncio.run(_run(json.loads(plan)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
