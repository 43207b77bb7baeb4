"""Forks: a client says in a child of its process that it is not to be used there."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable

import pytest

from headgate.protocol.aio import connect
from headgate.protocol.blocking import connect_blocking
from tests.support.fake_broker import fake_broker
from tests.support.threaded import in_thread

pytestmark = pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="processes are not forked here")

SECONDS_MAX = 20


def in_child(work: Callable[[], object]) -> str:
    """What came of it in a forked child: the class and text of an error."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS_MAX)
        try:
            told = f"fine: {work()}"
        except BaseException as error:
            told = f"{type(error).__name__}: {error}"
        os.write(writer, told.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        told = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    return told


TOLD = "LocalError: this client was connected before the process was forked: connect in the child"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forking while there are threads
def test_a_blocking_client_is_of_no_use_in_a_child_and_unharmed_in_its_parent() -> None:
    with in_thread(fake_broker) as fake, connect_blocking(fake.thing.address) as client:
        subscription = client.subscribe("a")
        assert in_child(lambda: client.publish("a")) == TOLD
        assert in_child(lambda: client.ask("status")) == TOLD
        assert in_child(lambda: client.publish_soon("a")) == TOLD
        assert in_child(client.flush) == TOLD
        assert in_child(lambda: next(subscription)) == TOLD
        assert in_child(client.close) == "fine: None"
        client.publish("a", {"x": 1})
        assert next(subscription).attributes == {"x": 1}
        assert (client.reconnects, fake.thing.goodbyes) == (0, 0)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_an_asyncio_client_is_of_no_use_in_a_child_and_unharmed_in_its_parent() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        subscription = await client.subscribe("a")
        assert in_child(lambda: client.publish_soon("a")) == TOLD
        assert in_child(lambda: client.publish("a").send(None)) == TOLD
        assert in_child(lambda: client.ask("status").send(None)) == TOLD
        assert in_child(lambda: subscription.__anext__().send(None)) == TOLD
        assert in_child(lambda: asyncio.new_event_loop().run_until_complete(client.publish("a"))) == TOLD
        await client.publish("a", {"x": 1})
        assert (await anext(subscription)).attributes == {"x": 1}
        assert (client.reconnects, fake.goodbyes) == (0, 0)
