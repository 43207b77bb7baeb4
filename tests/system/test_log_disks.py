"""Bad disks, for real: one that is full, one that may not be written, and a broker that is killed while it writes.

The disks are small file systems in memory that only the broker sees; where the system does not permit that, such a
test is passed over.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

import pytest

import headgate
from headgate.broker.daemon.log import SqliteLogStore
from headgate.broker.daemon.main import DISK_UNUSABLE
from headgate.protocol.client import ClientLimits
from headgate.protocol.data import LogKind, LogName
from headgate.protocol.errors import Refused, UnknownOutcome
from tests.support.child_broker import Child, child_broker
from tests.support.damaged_log import LogKit
from tests.support.limited import connect_limited

pytestmark = pytest.mark.slow

STORED = {"durability": "stored"}
KILLS = 20
_ALONE = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-ec")


def mounted(script: str, folder: Path) -> tuple[str, ...]:
    """A command that runs another one behind these mounts; $D is the folder."""
    return (*_ALONE, f'D="{folder}"; {script}; exec "$@"', "sh")


@pytest.fixture(autouse=True, scope="module")
def _permitted() -> None:
    if shutil.which("unshare") is None or subprocess.run([*_ALONE, "true"], capture_output=True).returncode:
        pytest.skip("this system lets nobody make a file system of his own")


GIVING_UP_SOON = ClientLimits(store_try_seconds=2.0)
"""Clients do not wait long for a full disk to have room."""


async def test_on_a_full_disk_stored_events_are_refused_and_everything_else_goes_on(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    small = mounted('mount -t tmpfs -o size=4m none "$D"; head -c 2000000 /dev/zero > "$D/filler"', data)
    async with child_broker(tmp_path, before=small, name="ann") as child:
        seen = Path(f"/proc/{child.process.pid}/root{data}")
        async with await connect_limited(child.address, GIVING_UP_SOON) as client:
            await client.ask("schema.put", stream="a", schema=STORED)
            subscription = await client.subscribe("b")
            stored = 0
            with pytest.raises(UnknownOutcome, match=r"no room for log\.db.*make room"):
                for _ in range(1000):
                    await client.publish("a", {}, bytes(20_000), mode="stored")
                    stored += 1
            assert stored > 10
            await client.publish("b", {"n": 1}, b"x")
            assert (await anext(subscription)).attributes == {"n": 1}
            (seen / "filler").unlink()
            for _ in range(5):
                await client.publish("a", {}, bytes(20_000), mode="stored")
            (log,) = await client.logs("a")
            assert (log.first, log.next) == (0, stored + 5), "what was refused has no place in the log"
            rows, position = 0, 0
            while position < log.next:
                chunk = await client.read_log(log.name, position)
                rows += sum(row.count for row in chunk.rows)
                position = chunk.next
            assert rows == stored + 5
        child.signal(signal.SIGTERM)
        assert await child.exit() == 0
        assert "Traceback" not in child.stderr


@contextmanager
def small_disk(folder: Path, script: str) -> Iterator[tuple[tuple[str, ...], Path]]:
    """A disk that outlives brokers: what runs a command that sees it, and where others do."""
    follower = subprocess.Popen([*mounted(f"{script}; echo", folder), "sleep", "600"], stdout=subprocess.PIPE)
    try:
        assert follower.stdout is not None and follower.stdout.readline()
        inside = ("nsenter", "-t", str(follower.pid), "--user", "--mount", "--preserve-credentials")
        yield inside, Path(f"/proc/{follower.pid}/root{folder}")
    finally:
        follower.kill()
        follower.communicate()


async def store(client: headgate.Client, batches: int) -> int:
    """Many batches at a time, of 64 KB each; how many were stored."""
    publish = [client.publish_batch("a", {}, [bytes(1000)] * 64, mode="stored") for _ in range(batches)]
    outcomes = await asyncio.gather(*publish, return_exceptions=True)
    for outcome in outcomes:
        assert outcome is None or isinstance(outcome, UnknownOutcome | Refused), outcome
    return sum(outcome is None for outcome in outcomes)


async def test_a_broker_that_filled_its_disk_starts_again_and_retention_makes_room(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with small_disk(data, 'mount -t tmpfs -o size=12m none "$D"') as (inside, seen):
        async with child_broker(tmp_path, before=inside, name="ann") as child:
            async with await connect_limited(child.address, GIVING_UP_SOON) as client:
                await client.ask("schema.put", stream="a", schema=STORED)
                assert 100 < await store(client, 300) < 250
                await client.publish("b", {}, b"x")
            child.signal(signal.SIGTERM)
            assert await child.exit() == 0 and "Traceback" not in child.stderr
        (seen / "filler").write_bytes(bytes(shutil.disk_usage(seen).free))  # and others take what is left
        async with child_broker(tmp_path, before=inside, name="ann") as child:
            async with await connect_limited(child.address, GIVING_UP_SOON) as client:
                await client.publish("b", {}, b"x")
                assert await store(client, 1) == 0
                (seen / "filler").unlink()
                await client.ask("schema.put", stream="a", schema=STORED | {"retention_bytes": 5_000_000})
                async with asyncio.timeout(20):
                    while await store(client, 40) < 40:  # what is over is gone within some seconds
                        pass
                (log,) = await client.logs("a")
                assert log.first > 0
            child.signal(signal.SIGTERM)
            assert await child.exit() == 0 and "Traceback" not in child.stderr


async def test_a_schema_that_a_full_disk_cannot_keep_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with small_disk(data, 'mount -t tmpfs -o size=4m none "$D"') as (inside, seen):
        async with (
            child_broker(tmp_path, before=inside, name="ann") as child,
            await headgate.connect(child.address) as client,
        ):
            (seen / "filler").write_bytes(bytes(shutil.disk_usage(seen).free))
            kept = 0
            with pytest.raises(Refused, match=r"could not keep it: no room for .*records\.json: make room"):
                for kept in range(1000):  # the first ones go where the reserve was
                    await client.ask("schema.put", stream=f"s{kept}", schema=STORED)
            records = json.loads((seen / "records.json").read_text())
            assert [f"schema/s{number}" in records for number in range(kept + 1)] == [True] * kept + [False]


async def test_one_full_disk_of_three_hinders_nobody_else_and_of_two_it_is_told_in_time(tmp_path: Path) -> None:
    data = tmp_path / "ann"
    data.mkdir()
    with small_disk(data, 'mount -t tmpfs -o size=6m none "$D"') as (inside, seen):
        async with (
            child_broker(tmp_path, before=inside, name="ann", data=str(data)) as ann,
            child_broker(tmp_path, name="bob", data=str(tmp_path / "bob"), join=peers_of(ann)) as bob,
            child_broker(tmp_path, name="cyd", data=str(tmp_path / "cyd"), join=peers_of(ann)) as cyd,
        ):
            async with await headgate.connect(bob.address) as client:
                await wait_until_three(client)
                await client.ask("schema.put", stream="a", schema=STORED)
                assert await store(client, 1) == 1
            (seen / "filler").write_bytes(bytes(shutil.disk_usage(seen).free))
            for broker in (bob, cyd):
                async with await headgate.connect(broker.address) as client, asyncio.timeout(10):
                    assert await store(client, 20) == 20
            status = await answer_of(ann, "status")
            assert "no room for log.db" in status["log_full"] and status["settled"]
            async with await headgate.connect(bob.address) as client:
                assert await store(client, 1) == 1
                cyd.signal(signal.SIGKILL)
                await cyd.exit()
                began = monotonic()
                with pytest.raises(UnknownOutcome, match="no room on the disk of ann"):
                    await client.publish("a", {}, b"x", mode="stored")
            assert 15 < monotonic() - began < 28, "some 25 seconds, as is documented"
            (seen / "filler").unlink()
            async with await headgate.connect(bob.address) as client, asyncio.timeout(20):
                assert await store(client, 20) == 20


async def answer_of(broker: Child, verb: str) -> Any:
    """What a broker says."""
    async with await headgate.connect(broker.address) as client:
        return await client.ask(verb)


async def wait_until_three(client: headgate.Client) -> None:
    """All have found each other."""
    async with asyncio.timeout(20):
        while (await client.ask("status"))["brokers"] < 3 or not (await client.ask("status"))["settled"]:
            await asyncio.sleep(0.1)


def peers_of(broker: Child) -> str:
    """Where other brokers reach it."""
    return str(broker.lines("listening")[-1]["peers"])


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ('mount --bind "$D" "$D"; mount -o remount,bind,ro "$D"', ["cannot use the data directory", "--data"]),
        ('mount --bind "$D/log.db" "$D/log.db"; mount -o remount,bind,ro "$D/log.db"', ["log.db", "readable and writ"]),
    ],
    ids=["directory", "file"],
)
def test_what_may_not_be_written_is_told_in_one_line(tmp_path: Path, script: str, words: list[str]) -> None:
    kit = LogKit().fill(commits=4, checkpoint_at=2)
    data = Path(shutil.copytree(kit.copy(), tmp_path / "data"))
    kit.end()
    flags = ["--data", str(data), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--name", "ann"]
    command = [*mounted(script, data), sys.executable, "-m", "headgate.ops.cli", "serve", *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == DISK_UNUSABLE
    (line,) = done.stderr.splitlines()
    assert "cannot start" in line and all(word in line for word in words)


_WRITER = """
import sys
from pathlib import Path
from headgate.broker.core.effects import Append
from headgate.broker.core.log_state import ProducerState
from headgate.broker.daemon.log import SqliteLogStore
from headgate.protocol.data import LogName

store = SqliteLogStore(Path(sys.argv[1]), "ann", lambda: 7)
opened = store.open()
assert opened.epoch == 7 and not opened.damage, opened
log, end = LogName("ann", 7, 0, "a"), max([state.next for state in opened.logs], default=0)
while True:
    state = ProducerState("p", 1, end + 3, b"", end)
    rows = [(place, b"%d" % place + bytes(place % 5000)) for place in range(end, end + 3)]
    store.append([Append(1, log, row, place, 1, end, state) for place, row in rows])
    end += 3
    print(end, flush=True)
    if end % 60 == 0:
        store._written = 10**9
    while store.untidy:
        store.tidy()
"""


def test_a_store_that_is_killed_again_and_again_loses_nothing(tmp_path: Path) -> None:
    random = Random(7)
    acknowledged = 0
    for _ in range(KILLS):
        command = [sys.executable, "-c", _WRITER, str(tmp_path)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None and process.stderr is not None
        for _ in range(random.randrange(1, 40)):
            line = process.stdout.readline()
            assert line, process.stderr.read()
            acknowledged = int(line)
        process.kill()
        for line in process.stdout.read().splitlines():
            acknowledged = int(line)
        process.wait()
        process.stdout.close()
        process.stderr.close()
    store = SqliteLogStore(tmp_path, "ann", lambda: 7)
    opened = store.open()
    (state,) = opened.logs
    assert opened.damage == [] and state.next >= acknowledged
    rows, after, damage = store.read(LogName("ann", 7, LogKind.EVENTS, "a"), 0, 2**40)
    assert (after, damage) == (state.next, "")
    assert [row.rstrip(b"\0") for row in rows] == [b"%d" % place for place in range(state.next)]
    assert [producer.next for producer in opened.producers] == [state.next]
    store.close()
