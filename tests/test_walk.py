"""THE WALK, executed: one event from the bytes of its publisher to its subscriber, through six files in order.

    daemon/server.py -> protocol/wire/session.py -> core/node.py -> core/dissemination.py -> matching/index/index.py
        -> core/subscribers.py

A real server, driver and Node; only the sockets are fakes. While the publisher's bytes come in, the interpreter
itself reports which functions run, so that the page that describes the walk cannot rot.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

from headgate.broker.core import Node, NodeConfig
from headgate.broker.daemon.driver import Driver
from headgate.broker.daemon.records import Records
from headgate.broker.daemon.server import Server
from headgate.protocol import Role, Session
from headgate.protocol.messages import Deliver, Hello, Message, Publish
from tests.support.builders import deliveries_of, make_publish, make_subscribe, quote_batch

ROOT = Path(__file__).resolve().parent.parent
WALK = {
    "broker/daemon/server.py": "on_messages",
    "protocol/wire/session.py": "receive",
    "broker/core/node.py": "handle",
    "broker/core/delivery/dissemination.py": "carry",
    "matching/index/index.py": "match",
    "broker/core/delivery/subscribers.py": "deliver",
}
"""The six files, and the function of each in which the event is handed on."""


class FakeSocket(asyncio.Transport):
    """A client with a Session of its own at the other end of a server's connection."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        self.session = Session(Role.CLIENT, 0.0)
        self.heard: list[Message] = []
        self.connection = server._accept()
        self.connection.connection_made(self)
        self.say(Hello(name="walker"))

    def write(self, data: Any) -> None:
        """The server's bytes become messages."""
        self.heard += self.session.receive(bytes(data), 0.0)

    def say(self, *messages: Message) -> None:
        """The client's messages become the server's bytes."""
        for message in messages:
            self.session.send(message)
        data = b"".join(self.session.take())
        self.connection.get_buffer(-1)[: len(data)] = data
        self.connection.buffer_updated(len(data))
        self.connection.flush()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing is ever full here."""


class Steps:
    """What ran in the six files, in order of beginning: file -> (arguments, result)."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.seen: dict[str, dict[str, Any]] = {}
        self.results: dict[str, Any] = {}

    def watch(self, act: Callable[[], None]) -> None:
        """Do it, and take notes."""
        sys.setprofile(self._note)
        try:
            act()
        finally:
            sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        path = frame.f_code.co_filename
        name = path.removeprefix(f"{ROOT}/headgate/")
        if WALK.get(name) != frame.f_code.co_name:
            return
        if event == "call" and name not in self.seen:
            self.order.append(name)
            self.seen[name] = dict(frame.f_locals)
        elif event == "return":
            self.results.setdefault(name, argument)


async def _walk(directory: Path) -> tuple[Steps, Server, FakeSocket]:
    ticks = count(1_000)  # what comes alone is handled at once
    driver = Driver(Node(NodeConfig("broker-1", 1), Random(1), 1_000.0), Records(directory), lambda: float(next(ticks)))
    server = Server(driver, connections_max=10)
    subscriber = FakeSocket(server)
    subscriber.say(make_subscribe(1, "quotes/*/OTE", "price BETWEEN 8.30 AND 8.70"))
    publisher = FakeSocket(server)
    await asyncio.sleep(0)
    subscriber.heard.clear()
    batch = quote_batch(["quotes/NYSE/OTE", "quotes/NYSE/IBM"], ["it is me", "not me"], price=[8.5, 90.0])
    steps = Steps()
    steps.watch(lambda: publisher.say(make_publish(1, batch)))
    await asyncio.sleep(0)
    for client in (subscriber, publisher):
        client.connection.connection_lost(None)
    return steps, server, subscriber


def test_one_event_walks_through_six_files(tmp_path: Path) -> None:
    steps, server, subscriber = asyncio.run(_walk(tmp_path))

    # The connection reads before it tells the server; from there on the order is that of the page.
    assert sorted(steps.order[:2]) == ["broker/daemon/server.py", "protocol/wire/session.py"]
    assert steps.order[2:] == list(WALK)[2:]

    # 1. daemon/server.py: a connection exists, and what its bytes say goes to the driver.
    assert steps.seen["broker/daemon/server.py"]["self"] is server

    # 2. protocol/wire/session.py: bytes became a checked PUBLISH.
    (publish,) = steps.results["protocol/wire/session.py"]
    assert isinstance(publish, Publish)

    # 3. core/node.py: the table handed it on, and what came of it is what the host must do.
    assert steps.seen["broker/core/node.py"]["happened"].messages == [publish]

    # 4. core/dissemination.py: the stream of the topic, and the batch as it came.
    assert steps.seen["broker/core/delivery/dissemination.py"]["batch"] is publish.batch

    # 5. matching/index/index.py: one subscription wants the first row.
    assert [(ids, list(rows)) for ids, rows in steps.results["matching/index/index.py"]] == [((1,), [0])]

    # 6. core/subscribers.py: a portion of one event for the session that holds subscription 1.
    assert steps.seen["broker/core/delivery/subscribers.py"]["portion"].count == 1

    # And it is there.
    assert [type(message) for message in subscriber.heard] == [Deliver]
    assert deliveries_of(subscriber.heard) == [(1, "it is me")]
