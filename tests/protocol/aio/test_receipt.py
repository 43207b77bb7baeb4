"""Receipts: awaited by many, cancelled alone."""

from __future__ import annotations

import asyncio

import pytest

from headgate.protocol.aio.receipt import Receipt
from headgate.protocol.errors import Refused


async def awaited(receipt: Receipt) -> object:
    return await receipt


async def test_everybody_who_awaits_is_told() -> None:
    receipt = Receipt(2)
    tasks = [asyncio.ensure_future(awaited(receipt)) for _ in range(2)]
    await asyncio.sleep(0)
    assert receipt.awaiters == 2
    receipt.settle("value")
    assert await asyncio.gather(*tasks) == ["value", "value"]
    assert await receipt == "value"


async def test_cancelling_one_leaves_the_others() -> None:
    receipt = Receipt()
    first, second = (asyncio.ensure_future(awaited(receipt)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    receipt.settle(error=Refused(100, "no"))
    with pytest.raises(Refused):
        await second
    with pytest.raises(Refused):
        await receipt


async def test_wait_raises_nothing_and_counts_as_nobody() -> None:
    receipt = Receipt()
    task = asyncio.ensure_future(receipt.wait())
    await asyncio.sleep(0)
    receipt.settle(error=Refused(100, "no"))
    await task
    await receipt.wait()
    assert receipt.awaiters == 0
