"""`subscription.amend` against real brokers: both libraries, in the midst of publishing, and over a lost session."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

import headgate
from headgate import Amended, LocalError, Refused
from tests.support.child_broker import child_broker
from tests.system.test_restart import free_address

pytestmark = pytest.mark.slow


async def test_nothing_that_both_want_is_missed_or_comes_twice_while_others_publish(tmp_path: Path) -> None:
    peers = [free_address() for _ in range(3)]
    settings = [{"peer_listen": peer, "join": ",".join(peers), "name": f"b{at}"} for at, peer in enumerate(peers)]
    folders = [tmp_path / f"b{at}" for at in range(3)]
    for folder in folders:
        folder.mkdir()
    async with (
        child_broker(folders[0], **settings[0]) as first,
        child_broker(folders[1], **settings[1]) as second,
        child_broker(folders[2], **settings[2]) as third,
    ):
        reader = await headgate.connect(first.address)
        writers = [await headgate.connect(child.address) for child in (second, third)]
        subscription = await reader.subscribe("quotes", where="kind = 'even'")
        stop = False
        published = [0, 0]

        async def publish(at: int) -> None:
            while not stop:
                number = 2 * published[at] + at
                kind = "both" if number % 3 == 0 else ("even" if number % 3 == 1 else "odd")
                await writers[at].publish(f"quotes/{at}", {"number": number, "kind": kind})
                published[at] += 1
                await asyncio.sleep(0.001)

        await subscription.amend(where="kind IN ('even', 'both')")
        publishing = [asyncio.get_running_loop().create_task(publish(at)) for at in range(2)]
        await asyncio.sleep(0.3)
        told = await subscription.amend(where="kind IN ('odd', 'both')")
        assert told == Amended(puts=2, kept=0, removed=2), "what rests at a value is the whole condition"
        await asyncio.sleep(0.3)
        await subscription.amend(where="kind IN ('even', 'both')", pattern="quotes/*")
        await asyncio.sleep(0.3)
        stop = True
        await asyncio.gather(*publishing)
        await writers[0].publish("quotes/0", {"number": -1, "kind": "both"})
        await writers[1].publish("quotes/1", {"number": -2, "kind": "both"})
        got: list[int] = []
        while not {-1, -2} <= set(got):
            got.append((await asyncio.wait_for(anext(subscription), 20.0)).attributes["number"])
        assert len(got) == len(set(got))
        both = {2 * n + at for at in range(2) for n in range(published[at]) if (2 * n + at) % 3 == 0}
        assert both <= set(got)
        assert not subscription.gaps
        for client in (reader, *writers):
            await client.close()


async def test_a_new_session_asks_for_what_was_asked_for_last(tmp_path: Path) -> None:
    address = free_address()
    async with child_broker(tmp_path, listen=address, name="ann") as broker:
        client = await headgate.connect(address)
        subscription = await client.subscribe("a", where="n > 5")
        await subscription.amend(where="n < 3")
        assert (subscription.where, subscription.pattern) == ("n < 3", "a")
        broker.signal(signal.SIGKILL)
        await broker.exit()
        waiting = asyncio.get_running_loop().create_task(subscription.amend(where="n = 7"))
    async with child_broker(tmp_path, listen=address, name="ann"):
        await asyncio.wait_for(waiting, 30.0)
        for number in (1, 6, 7):
            await client.publish("a", {"n": number})
        assert (await asyncio.wait_for(anext(subscription), 20.0)).attributes == {"n": 7}
        await client.close()


async def test_what_is_refused_leaves_all_as_it_was(tmp_path: Path) -> None:
    async with child_broker(tmp_path) as broker, await headgate.connect(broker.address) as client:
        subscription = await client.subscribe("a", where="n > 5")
        with pytest.raises(Refused):
            await subscription.amend(where="n >")
        with pytest.raises(Refused):
            await subscription.amend(where="DELTA(n) > 1")
        assert subscription.where == "n > 5"
        await client.publish("a", {"n": 1})
        await client.publish("a", {"n": 6})
        assert (await anext(subscription)).attributes == {"n": 6}
        await subscription.close()
        with pytest.raises(LocalError):
            await subscription.amend(where="")


async def test_the_blocking_library_amends_alike(tmp_path: Path) -> None:
    def use(address: str) -> list[object]:
        with headgate.connect_blocking(address) as client:
            subscription = client.subscribe("a", where="n > 5")
            client.publish("a", {"n": 6})
            client.flush()
            assert subscription.amend(where="n < 3", pattern="a/b").puts == 1
            for number in (1, 6):
                client.publish("a/b", {"n": number})
                client.publish("a", {"n": number})
            client.publish("a/b", {"n": 2})
            client.flush()
            return [event.attributes["n"] for event in subscription.events(3.0)]

    async with child_broker(tmp_path) as broker:
        took: Callable[[str], list[object]] = use
        assert await asyncio.to_thread(took, broker.address) == [6, 1, 2]
