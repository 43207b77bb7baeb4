"""A data folder that is put back from a backup, for real: no position and no id is given to two events."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

import headgate
from headgate.broker.daemon.copied_folder import birth_of
from tests.support.child_broker import Child, child_broker

pytestmark = pytest.mark.slow


async def life(folder: Path, number: int) -> tuple[dict[str, int], Child]:
    """Start, store one event, stop: the `n` of every event that there is by then, by its position."""
    async with child_broker(folder, name="ann") as child:
        async with await headgate.connect(child.address) as client:
            await client.ask("schema.put", stream="a", schema={"durability": "stored"})
            await client.publish("a", {"n": number}, mode="stored")
            found = {}
            async with await client.subscribe("a", start="start") as subscription:
                while number not in found.values():
                    event = await anext(subscription)
                    found[event.position] = event.attributes["n"]
        child.signal(signal.SIGTERM)
        assert await child.exit() == 0
    return found, child


@pytest.mark.parametrize("moved", [False, True])
async def test_a_backup_goes_on_in_an_epoch_of_its_own(tmp_path: Path, moved: bool) -> None:
    data, backup = tmp_path / "data", tmp_path / "backup"
    await life(tmp_path, 1)
    if not birth_of(data / "lock"):
        pytest.skip("this file system does not say when it made a file")
    shutil.copytree(data, backup)
    lost, child = await life(tmp_path, 2)
    assert child.lines("data folder is a copy") == []
    shutil.rmtree(data)
    if moved:
        backup.rename(data)
    else:
        shutil.copytree(backup, data)
    found, child = await life(tmp_path, 3)
    (line,) = child.lines("data folder is a copy")
    assert line["level"] == "warning" and "backup" in line["reason"]
    assert sorted(found.values()) == [1, 3]
    assert {position: number for position, number in found.items() if lost.get(position) not in (None, number)} == {}
    again, child = await life(tmp_path, 4)
    assert child.lines("data folder is a copy") == []
    assert sorted(again.values()) == [1, 3, 4] and found.items() <= again.items()
    assert len({position.rpartition(":")[0] for position in again}) == 2
