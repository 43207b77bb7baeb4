"""The asyncio driver: who is cancelled leaves a task where it waits, and ends work that nobody goes on with."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headgate.protocol.aio import Receipt
from headgate.protocol.aio.driver import drive, run
from headgate.protocol.client import Close, Dial, Settled, Task, Work
from headgate.protocol.errors import CannotConnect, ConnectionLost


class Client:
    """One that can be closed, and dials nobody of that name."""

    def __init__(self) -> None:
        self.dialling = asyncio.Lock()
        self.is_closed = False

    async def another(self, address: str) -> Client:
        if address == "nobody":
            raise CannotConnect(address, "refused")
        return Client()

    async def close(self) -> None:
        self.is_closed = True


def waiting(receipt: Receipt, ended: list[str]) -> Work[object]:
    try:
        yield Settled(None, receipt)  # type: ignore[arg-type]
        return receipt.result()
    finally:
        ended.append("ended")


async def test_a_task_goes_on_with_whoever_drives_it_next() -> None:
    receipt, ended = Receipt(), list[str]()
    task = Task(waiting(receipt, ended))
    for _ in range(2):
        driving = asyncio.ensure_future(drive(task))
        await asyncio.sleep(0)
        driving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await driving
    assert not ended
    receipt.settle(7)
    assert await drive(task) == 7 and ended == ["ended"]


async def test_work_that_is_cancelled_ends() -> None:
    ended: list[str] = []
    running = asyncio.ensure_future(run(waiting(Receipt(), ended)))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended == ["ended"]


async def test_what_goes_wrong_is_raised() -> None:
    receipt = Receipt()
    receipt.settle(error=ConnectionLost("reset"))
    with pytest.raises(ConnectionLost, match="reset"):
        await run(waiting(receipt, []))


async def test_others_are_dialled_and_closed_and_their_absence_is_told() -> None:
    client: Any = Client()
    others: dict[str, Any] = {}

    def work() -> Work[Any]:
        other = yield Dial(client, others, "bob", "there")
        try:
            yield Dial(client, others, "nobody", "nobody")
        except CannotConnect:
            yield Close(other)
        return other

    assert (await run(work())).is_closed and not client.is_closed


async def test_who_wants_the_same_broker_is_given_the_same_client() -> None:
    client: Any = Client()
    others: dict[str, Any] = {}

    def work() -> Work[Any]:
        return (yield Dial(client, others, "bob", "there"))

    found = await asyncio.gather(*[run(work()) for _ in range(3)])
    assert len(set(map(id, found))) == 1 and others == {"bob": found[0]}
