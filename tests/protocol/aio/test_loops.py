"""Loops: a client in a loop that is not its own is told so, and does not wait for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from headgate.protocol.aio import Client, connect
from headgate.protocol.aio.receipt import check_loop, current_loop
from headgate.protocol.errors import LocalError
from tests.support.fake_broker import fake_broker


async def test_its_own_loop_is_fine_and_no_loop_is_anybodys() -> None:
    check_loop(asyncio.get_running_loop())
    check_loop(None)
    assert current_loop() is asyncio.get_running_loop()


def test_outside_of_any_loop() -> None:
    loop = asyncio.new_event_loop()
    try:
        assert current_loop() is None
        with pytest.raises(LocalError, match="does not run here"):
            check_loop(loop)
    finally:
        loop.close()


USES: dict[str, Callable[[Client, Any, Any], Coroutine[Any, Any, Any]]] = {
    "publish": lambda client, subscription, receipt: client.publish("a"),
    "publish_batch": lambda client, subscription, receipt: client.publish_batch("a", None, [b"x"]),
    "ready": lambda client, subscription, receipt: client.ready(),
    "flush": lambda client, subscription, receipt: client.flush(),
    "ask": lambda client, subscription, receipt: client.ask("status"),
    "subscribe": lambda client, subscription, receipt: client.subscribe("a"),
    "next": lambda client, subscription, receipt: anext(subscription),
    "until_confirmed": lambda client, subscription, receipt: subscription.until_confirmed(),
    "unsubscribe": lambda client, subscription, receipt: subscription.close(),
    "receipt": lambda client, subscription, receipt: receipt.wait(),
    "close": lambda client, subscription, receipt: client.close(),
}


async def test_every_verb_in_another_loop_says_what_is_wrong() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        subscription = await client.subscribe("a")
        fake.acknowledging = False
        receipt = client.publish_soon("b")

        def elsewhere(use: Callable[[Client, Any, Any], Coroutine[Any, Any, Any]]) -> None:
            asyncio.run(asyncio.wait_for(use(client, subscription, receipt), 5))

        for name, use in USES.items():
            with pytest.raises(LocalError, match="another event loop"):
                await asyncio.to_thread(elsewhere, use)
                pytest.fail(f"{name} did not say so")
        with pytest.raises(LocalError, match="does not run here"):
            await asyncio.to_thread(client.publish_soon, "b")
        fake.acknowledge()
        await receipt
        await client.publish("b")
