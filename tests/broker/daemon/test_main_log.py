"""The daemon and its log: what a start says of what it finds, and how a broker ends whose disk fails."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

import headgate
from headgate.broker.daemon import Settings, load_settings
from headgate.broker.daemon import main as module
from headgate.broker.daemon.log import SqliteLogStore
from headgate.broker.daemon.main import run
from headgate.protocol.data import LogKind, LogName
from headgate.protocol.errors import HeadgateError
from tests.support.damaged_log import LogKit
from tests.support.live_broker import live_broker
from tests.support.waiting import wait_until

STORED = {"durability": "stored"}


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="module")
def kit() -> Iterator[LogKit]:
    kit = LogKit().fill(commits=6, checkpoint_at=3)
    yield kit
    kit.end()


def settings(directory: Path, **given: Any) -> Settings:
    free = {"listen": "127.0.0.1:0", "peer_listen": "127.0.0.1:0", "admin": "127.0.0.1:0", "log_format": "json"}
    return load_settings(free | {"data": directory, "name": "ann"} | given)


async def test_what_was_stored_is_there_in_the_next_life(tmp_path: Path) -> None:
    for life in range(3):
        async with live_broker(data=tmp_path) as broker, await headgate.connect(broker.address) as client:
            await client.ask("schema.put", stream="a", schema=STORED)
            await client.publish("a", {"life": life}, b"x", mode="stored")
            (log,) = await client.logs("a")
            assert (log.first, log.next) == (0, life + 1)


async def test_a_broker_without_stored_streams_has_no_log(tmp_path: Path) -> None:
    async with live_broker(data=tmp_path) as broker, await headgate.connect(broker.address) as client:
        await client.publish("a", {}, b"x")
    assert not list(tmp_path.glob("log.*"))


def test_the_log_of_another_broker_stops_the_start(
    kit: LogKit, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = kit.copy()
    before = (folder / "log.db").read_bytes()
    for _ in range(2):  # the lock of the directory is free again
        assert run(settings(folder, name="bob")) == module.DISK_UNUSABLE
        told = capsys.readouterr().err
        assert "is the log of broker 'ann', not of 'bob'" in told and "--name ann" in told
        assert told.count("\n") == 1 and "Traceback" not in told
    assert (folder / "log.db").read_bytes() == before


async def test_a_damaged_log_is_told_and_the_broker_serves_the_rest(kit: LogKit) -> None:
    folder = kit.copy()
    with (folder / "log.db").open("r+b") as stream:
        stream.truncate(30_000)
    with structlog.testing.capture_logs() as lines:
        async with live_broker(data=folder, name="ann") as broker, await headgate.connect(broker.address) as client:
            await client.ask("schema.put", stream="quotes", schema=STORED)
            await client.publish("quotes", {}, b"x", mode="stored")
            epochs = [log.name.epoch for log in await client.logs("quotes")]
    told = [line for line in lines if line["event"] == "log damaged"]
    assert told and all(line["log_level"] == "warning" for line in told)
    assert max(epochs) > 1_700_000_000
    assert (folder / "log.damaged-1.db").exists()


class Failing(sqlite3.Connection):
    """A disk whose synchronisation fails from the day on that it is told so."""

    broken = False

    def execute(self, statement: str, *arguments: Any) -> Any:
        if Failing.broken and statement == "COMMIT":
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorname = "SQLITE_IOERR_FSYNC"
            raise error
        return super().execute(statement, *arguments)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> type[Failing]:
    def store(directory: Path, name: str) -> SqliteLogStore:
        def opener(*arguments: Any, **named: Any) -> sqlite3.Connection:
            connection: sqlite3.Connection = sqlite3.connect(*arguments, factory=Failing, **named)
            return connection

        return SqliteLogStore(directory, name, opener=opener)

    monkeypatch.setattr(module, "SqliteLogStore", store)
    monkeypatch.setattr(Failing, "broken", False)
    return Failing


async def test_a_broker_whose_disk_fails_stops_and_acknowledges_nothing(tmp_path: Path, failing: type[Failing]) -> None:
    with structlog.testing.capture_logs() as lines:
        serving = asyncio.get_running_loop().create_task(module._serve(settings(tmp_path)))
        await wait_until(lambda: [line for line in lines if line["event"] == "listening"])
        address = next(line["clients"] for line in lines if "clients" in line)
        client = await headgate.connect(address)
        await client.ask("schema.put", stream="a", schema=STORED)
        await client.publish("a", {"n": 1}, b"x", mode="stored")
        failing.broken = True
        publishing = asyncio.ensure_future(client.publish("a", {"n": 2}, b"x", mode="stored"))
        async with asyncio.timeout(10):
            assert await serving == module.DISK_UNUSABLE
        publishing.cancel()
        with pytest.raises((asyncio.CancelledError, HeadgateError)):
            await publishing
        await client.close()
    (line,) = [line for line in lines if line["event"].startswith("the log cannot be written")]
    assert "SQLITE_IOERR_FSYNC" in line["reason"] and line["log_level"] == "error"
    assert not [line for line in lines if line["event"] == "draining"]
    held = SqliteLogStore(Path(shutil.copytree(tmp_path, tmp_path / "later")), "ann").open()
    assert [(log.name.kind, log.first, log.next) for log in held.logs] == [(LogKind.EVENTS, 0, 1)]


async def test_the_end_waits_for_the_disk(tmp_path: Path) -> None:
    async with live_broker(data=tmp_path, name="ann") as broker:
        client = await headgate.connect(broker.address)
        await client.ask("schema.put", stream="a", schema=STORED)
        for number in range(50):
            client.publish_soon("a", {"n": number}, b"x", mode="stored")
        await client.flush()
        await client.close()
        epoch = broker.daemon.node.log.epoch
    store = SqliteLogStore(tmp_path, "ann")
    log = LogName("ann", epoch, LogKind.EVENTS, "a")
    assert store.open().damage == [] and store.read(log, 0, 10**6)[1] == 50
    store.close()


async def test_an_ordinary_stop_leaves_no_write_ahead_file(tmp_path: Path) -> None:
    with structlog.testing.capture_logs() as lines:
        serving = asyncio.get_running_loop().create_task(module._serve(settings(tmp_path)))
        await wait_until(lambda: [line for line in lines if line["event"] == "listening"])
        async with await headgate.connect(next(line["clients"] for line in lines if "clients" in line)) as client:
            await client.ask("schema.put", stream="a", schema=STORED)
            await client.publish("a", {}, b"x", mode="stored")
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(10):
            assert await serving == 0
    assert sorted(path.name for path in tmp_path.glob("log.*")) == ["log.db", "log.mark"]
