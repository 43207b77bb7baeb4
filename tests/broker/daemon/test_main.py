"""From start to stop: what a start fails on, what a stop still does, what the service manager and the log hear."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

import headgate
from headgate.broker.daemon import Settings, copied_folder, load_settings
from headgate.broker.daemon import main as module
from headgate.broker.daemon.limits import DaemonLimits
from headgate.broker.daemon.main import AddressError, Daemon, run
from headgate.protocol.data import make_batch
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Deliver, Error, Gap, Goodbye, Hello, Message, Mode, Publish
from tests.support.child_broker import child_broker
from tests.support.damaged_log import NOW, LogKit
from tests.support.http import get
from tests.support.live_broker import live_broker
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_until


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    structlog.reset_defaults()
    gc.unfreeze()


@pytest.fixture
def taken() -> Iterator[str]:
    """An address that somebody else listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def settings(directory: Path, **given: Any) -> Settings:
    free = {"listen": "127.0.0.1:0", "admin": "127.0.0.1:0", "data": directory, "log_format": "json"}
    return load_settings(free | given)


def delivered(heard: list[Message]) -> int:
    return sum(message.portion.count for message in heard if isinstance(message, Deliver))


@pytest.mark.parametrize("setting", ["listen", "admin"])
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_an_address_that_is_taken_is_told_with_the_flag_that_changes_it(
    tmp_path: Path, taken: str, capsys: pytest.CaptureFixture[str], setting: str, loop: str
) -> None:
    assert run(settings(tmp_path, loop=loop, **{setting: taken})) == 1
    told = capsys.readouterr().err
    assert f"cannot listen on {taken}: " in told and "in use" in told
    assert f"choose another address with --{setting}" in told
    assert "Traceback" not in told


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("address", ["192.0.2.1:7400", "a..b:7400"])
def test_a_host_that_is_not_ours_is_told_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], loop: str, address: str
) -> None:
    assert run(settings(tmp_path, loop=loop, listen=address, insecure=True)) == 1
    assert f"cannot listen on {address}: " in capsys.readouterr().err


async def test_a_start_that_fails_leaves_nothing_behind(tmp_path: Path, taken: str) -> None:
    daemon = Daemon(settings(tmp_path, listen=taken, log_level="error"))
    with pytest.raises(AddressError) as caught:
        await daemon.start()
    assert (caught.value.setting, caught.value.address) == ("listen", taken)
    assert daemon.health.address
    with pytest.raises(OSError, match=r"refused|failed"):
        await get(daemon.health.address, "/healthz")


@pytest.mark.parametrize("asked", [{}, {"join": "127.0.0.1:1"}, {"peer_listen": "?"}])
async def test_a_peer_address_that_is_taken_stops_only_who_asked_for_peers(
    tmp_path: Path, taken: str, asked: dict[str, str]
) -> None:
    given = settings(tmp_path, log_level="error", **{name: value.replace("?", taken) for name, value in asked.items()})
    # As if the default port were taken: the real one may be anybody's.
    object.__setattr__(given, "peer_listen", taken)
    daemon = Daemon(given)
    if asked:
        with pytest.raises(AddressError) as caught:
            await daemon.start()
        assert (caught.value.setting, caught.value.address) == ("peer-listen", taken)
        return
    with structlog.testing.capture_logs() as lines:
        await daemon.start()
    (line,) = [line for line in lines if line["event"] == "no peer listener"]
    assert line["address"] == taken and "--peer-listen" in line["advice"]
    client = await RawClient.greeted(daemon.server.address)
    await client.close()
    await daemon.stop()


@pytest.mark.parametrize("seconds", [None, 5.0], ids=["clock right", "clock behind"])
async def test_a_log_that_was_put_back_goes_on_in_another_epoch(
    seconds: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seconds is not None:
        monkeypatch.setattr(module.time, "time", lambda: seconds)
    folder = shutil.copytree(LogKit().fill(commits=4).copy(), tmp_path / "data")
    births = {"lock": "1.0", "log.db": "2.0"}
    monkeypatch.setattr(copied_folder, "birth_of", lambda path: births[path.name])

    async def life() -> tuple[int, list[Any]]:
        daemon = Daemon(settings(folder, name="ann", log_level="error"))
        with structlog.testing.capture_logs() as lines:
            await daemon.start()
        await daemon.stop()
        return daemon._opened.epoch, [line for line in lines if line["event"] == "data folder is a copy"]

    assert await life() == (NOW, [])
    births["lock"] = "3.0"
    epoch, (line,) = await life()
    assert epoch == line["epoch"] > NOW and "lock in " in line["reason"] and "new epoch" in line["reason"]
    assert await life() == (epoch, []), "also when nothing was written in it"


def test_damaged_records_stop_the_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "records.json").write_text("{")
    assert run(settings(tmp_path)) == module.DISK_UNUSABLE
    told = capsys.readouterr().err
    assert "is damaged" in told and "Traceback" not in told


def test_fewer_connections_than_wished_for_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "connections_possible", lambda wanted: 7)
    (tmp_path / "records.json").write_text("{")
    run(settings(tmp_path))
    told = capsys.readouterr().err
    assert '"connections_max": 7' in told and "LimitNOFILE" in told


async def test_sighup_reads_the_settings_again_and_never_ends_the_broker(tmp_path: Path) -> None:
    file = tmp_path / "headgate.toml"
    file.write_text("drain_seconds = 3.0\n")
    async with child_broker(tmp_path, config=file, join="127.0.0.1:1") as child:
        file.write_text('log_level = "debug"\ndrain_seconds = 3.0\ngrace_seconds = 99\n')
        child.signal(signal.SIGHUP)
        await wait_until(lambda: len(child.lines("settings read again")) == 1)
        (line,) = child.lines("settings read again")
        assert (line["changed"], line["needs_a_restart"]) == ("log_level", "grace_seconds")
        await wait_until(lambda: [line for line in child.lines("broker not reached") if line["level"] == "debug"])
        file.write_text('log_level = "loud"\n')
        child.signal(signal.SIGHUP)
        await wait_until(lambda: child.lines("settings not read again"))
        assert f"log_level in {file}: 'loud' is none of" in child.lines("settings not read again")[0]["reason"]
        async with await headgate.connect(child.address) as client:
            assert (await client.ask("status"))["draining"] is False


async def test_without_settings_to_read_again_sighup_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon = Daemon(settings(tmp_path))
    await daemon.start()
    daemon.reload(None)
    await daemon.stop()
    assert '"changed": "nothing", "needs_a_restart": "nothing"' in capsys.readouterr().err


async def test_a_stop_delivers_what_was_accepted_and_says_goodbye() -> None:
    async with live_broker() as broker:
        subscriber, publisher = await RawClient.greeted(broker.address), await RawClient.greeted(broker.address)
        idle = await RawClient.connect(broker.address)
        await subscriber.subscribe(1, "a")
        for sequence in range(1, 51):
            await publisher.say(Publish(sequence, Mode.ACCEPTED, make_batch(["a"], {}, [b"x" * 10_000])))
        await wait_until(lambda: broker.daemon.node.statistics(0).events_received == 50)
        stopping = asyncio.get_running_loop().create_task(broker.daemon.stop())
        heard = await subscriber.hear_the_end()
        assert delivered(heard) == 50 and {type(message) for message in heard[:-1]} == {Deliver}
        for last in (heard[-1], (await publisher.hear_the_end())[-1], (await idle.hear_the_end())[-1]):
            assert isinstance(last, Goodbye) and last.code == ErrorCode.SHUTTING_DOWN
        for client in (subscriber, publisher, idle):
            await client.close()
        await stopping


async def test_a_stop_counts_what_it_could_not_deliver() -> None:
    async with live_broker() as broker, await headgate.connect(broker.address) as publisher:
        subscriber = await RawClient.greeted(broker.address, credit=2)
        await subscriber.subscribe(1, "a")
        for _ in range(5):
            await publisher.publish("a", {}, b"")
        stopping = asyncio.get_running_loop().create_task(broker.daemon.stop())
        heard = await subscriber.hear_the_end()
        assert delivered(heard) == 2
        (gap,) = [message for message in heard if isinstance(message, Gap)]
        assert (gap.subscription, gap.count) == (1, 3)
        assert isinstance(heard[-1], Goodbye)
        await subscriber.close()
        await stopping
        assert broker.daemon.node.statistics(0).drops["shutdown"] == 3


async def test_while_it_drains_a_newcomer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async with live_broker() as broker:
        late = await RawClient.connect(broker.address)
        await wait_until(lambda: broker.daemon.server.connections)
        monkeypatch.setattr(broker.daemon.server, "dismiss_strangers", lambda: None)
        stopping = asyncio.get_running_loop().create_task(broker.daemon.stop())
        await wait_until(lambda: broker.daemon.node.statistics(0).draining)
        await late.say(Hello())
        (error,) = await late.hear_the_end()
        assert isinstance(error, Error) and error.code == ErrorCode.SHUTTING_DOWN
        await late.close()
        await stopping


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
async def test_sigterm_drains_and_the_manager_hears_of_it(tmp_path: Path, loop: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(10)
        named: dict[str, Any] = {"NOTIFY_SOCKET": tmp_path / "notify", "WATCHDOG_USEC": 40_000}
        async with child_broker(tmp_path, loop=loop, **named) as child:
            assert manager.recv(100) == b"READY=1\nSTATUS=ready"
            assert manager.recv(100) == b"WATCHDOG=1"
            assert manager.recv(100) == b"WATCHDOG=1"
            async with await headgate.connect(child.address) as publisher:
                subscriber = await RawClient.greeted(child.address)
                await subscriber.subscribe(1, "a")
                for _ in range(10):
                    await publisher.publish("a", {}, b"")
            child.signal(signal.SIGTERM)
            heard = await subscriber.hear_the_end()
            assert delivered(heard) == 10 and isinstance(heard[-1], Goodbye)
            await subscriber.close()
            assert await child.exit() == 0
            assert "Traceback" not in child.stderr
            assert [len(child.lines(event)) for event in ("listening", "draining", "stopped")] == [1, 1, 1]
        said = {manager.recv(100)}
        while b"STOPPING=1" not in said:
            said.add(manager.recv(100))
        assert said <= {b"WATCHDOG=1", b"STOPPING=1"}


async def test_a_second_signal_waits_for_nobody(tmp_path: Path) -> None:
    with structlog.testing.capture_logs() as lines:
        loop = asyncio.get_running_loop()
        limits = DaemonLimits(close_seconds=60.0)
        serving = loop.create_task(module._serve(settings(tmp_path, drain_seconds=60), limits=limits))
        await wait_until(lambda: [line for line in lines if line["event"] == "listening"])
        stubborn = await RawClient.greeted(next(line["clients"] for line in lines if "clients" in line))
        os.kill(os.getpid(), signal.SIGTERM)
        assert isinstance(await stubborn.hear(), Goodbye)
        assert not serving.done()
        os.kill(os.getpid(), signal.SIGINT)
        async with asyncio.timeout(10):
            assert await serving == 0
        await stubborn.close()


async def test_a_callback_that_fails_is_logged_and_the_broker_goes_on(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    with structlog.testing.capture_logs() as lines:
        serving = loop.create_task(module._serve(settings(tmp_path)))
        await wait_until(lambda: [line for line in lines if line["event"] == "listening"])

        def broken() -> None:
            raise RuntimeError("a fault of ours")

        loop.call_soon(broken)
        await wait_until(lambda: [line for line in lines if line["event"] == "fault in the event loop"])
        client = await RawClient.greeted(next(line["clients"] for line in lines if "clients" in line))
        await client.close()
        os.kill(os.getpid(), signal.SIGTERM)
        assert await serving == 0


async def test_something_periodic_that_fails_comes_again() -> None:
    async with live_broker() as broker:
        calls: list[int] = []
        faults: list[dict[str, Any]] = []
        loop = asyncio.get_running_loop()
        before = loop.get_exception_handler()
        loop.set_exception_handler(lambda _, context: faults.append(context))

        def sometimes() -> None:
            calls.append(1)
            if len(calls) == 1:
                raise RuntimeError("a fault of ours")

        broker.daemon._every(0.001, sometimes)
        await wait_until(lambda: len(calls) > 2)
        assert len(faults) == 1
        loop.set_exception_handler(before)
