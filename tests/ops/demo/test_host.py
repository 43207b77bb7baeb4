"""The demo's broker: its own environment, its first words, and how it fails."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from headgate.ops.demo.host import BrokerProcess, _free_addresses, _is_whole, _listening, running_brokers
from headgate.protocol.errors import CannotConnect


def test_it_is_not_disturbed_by_the_settings_of_other_brokers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEADGATE_JOIN", "10.0.0.1:7401")
    monkeypatch.setenv("HEADGATE_LISTEN", "0.0.0.0:7400")
    environment = BrokerProcess("demo", "127.0.0.1:1", ["127.0.0.1:1"])._environment(tmp_path)
    assert "HEADGATE_JOIN" not in environment
    assert environment["HEADGATE_LISTEN"] == "127.0.0.1:0"
    assert environment["HEADGATE_DATA"].startswith(str(tmp_path))


def test_each_is_told_the_others_and_has_a_folder_of_its_own(tmp_path: Path) -> None:
    peers = _free_addresses(3)
    assert len(set(peers)) == 3
    environment = BrokerProcess("demo-2", peers[1], peers)._environment(tmp_path)
    assert environment["HEADGATE_JOIN"] == f"{peers[0]},{peers[2]}"
    assert (environment["HEADGATE_PEER_LISTEN"], environment["HEADGATE_NAME"]) == (peers[1], "demo-2")
    assert environment["HEADGATE_DATA"] == str(tmp_path / "demo-2")


@pytest.mark.parametrize(
    ("states", "settled", "whole"),
    [
        (["up", "up", "up"], True, True),
        (["up", "up"], True, False),
        (["up", "up", "joining"], True, False),
        (["up", "up", "up"], False, False),
    ],
)
def test_when_a_cluster_is_whole(states: list[str], settled: bool, whole: bool) -> None:
    assert _is_whole({"brokers": [{"state": state} for state in states], "settled": settled}, 3) is whole


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ('{"event": "listening", "clients": "127.0.0.1:1", "admin": "127.0.0.1:2"}', ("127.0.0.1:1", "127.0.0.1:2")),
        ('{"event": "starting"}', None),
        ("[1]", None),
        ("listening", None),
    ],
)
def test_its_first_words(text: str, addresses: tuple[str, str] | None) -> None:
    assert _listening(text) == addresses


def test_one_that_ends_at_once_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(BrokerProcess, "_environment", lambda self, folder: {"HEADGATE_LISTEN": "nowhere"})
    monkeypatch.chdir(Path(__file__).parent.parent.parent.parent)

    async def start() -> None:
        broker = BrokerProcess("demo", "127.0.0.1:0", [])
        try:
            await broker.start(tmp_path)
        finally:
            await broker.stop()

    with pytest.raises(CannotConnect, match=r"ended at once: .*nowhere.* is not an address"):
        asyncio.run(start())


@pytest.mark.slow
def test_it_runs_and_leaves_nothing_behind() -> None:
    async def start() -> Path:
        async with running_brokers(1) as ((broker,), _):
            assert broker.address.startswith("127.0.0.1:")
            assert broker._process is not None
            folders = Path(f"/proc/{broker._process.pid}/environ").read_bytes() if sys.platform == "linux" else b""
        assert broker._process.returncode == 0
        for entry in folders.split(b"\0"):
            name, _, value = entry.partition(b"=")
            if name == b"HEADGATE_DATA":
                return Path(value.decode())
        return Path("no", "such", "folder")

    assert not asyncio.run(start()).parent.exists()
