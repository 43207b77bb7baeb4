"""Links to other brokers over real sockets: accepted, dialled, refused, cut; two whole brokers that find together."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest
import structlog

from headgate.broker.core import NodeConfig
from headgate.broker.core.cause import Cause
from headgate.broker.core.delivery import Subscribers
from headgate.broker.core.effects import Dial, Effect
from headgate.broker.core.inputs import (
    DialFailed,
    Drain,
    Input,
    LinkDown,
    LinkPaused,
    LinkResumed,
    PeerUp,
    Reachable,
    Received,
)
from headgate.broker.core.links import PeerHooks, Peers
from headgate.broker.core.timers import Timers
from headgate.broker.daemon.driver import Driver
from headgate.broker.daemon.limits import DEFAULT_LIMITS, DIALS_UNTOLD, DaemonLimits
from headgate.broker.daemon.peers import PeerServer
from headgate.broker.daemon.records import Records
from headgate.protocol.errors import ErrorCode
from headgate.protocol.limits import PAGE_LENGTH_MAX
from headgate.protocol.messages import PEER_VERSION, Control, Error, Hello, Peer
from tests.support.live_broker import live_broker
from tests.support.peer_events import forward
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_until


class PeersNode:
    """A Node that is nothing but Peers, and a list of what it was told."""

    def __init__(self, name: str) -> None:
        self.config = NodeConfig(name=name, incarnation=1)
        self.cause = Cause(name)
        self.effects: list[Effect] = []
        self.inputs: list[Input] = []
        self.told: list[Any] = []
        self.events = 0
        subscribers = Subscribers(self.config, self.effects, Timers())
        hooks = PeerHooks(
            up=lambda info, now: self.told.append(("up", info.name)),
            down=lambda info, reason, now: self.told.append(("down", info.name)),
            letter=lambda info, message, now: None,
            control=lambda info, message, now: self.told.append(("control", message.body)),
            copy=lambda info, message, now: None,
            forward=self._forward,
            deliver=lambda info, message, now: None,
            gap=lambda info, message, now: None,
            lost=lambda info, stream, count, now: None,
            returned=lambda info, forwards, now: None,
            fetched=lambda info, message, now: None,
        )
        self.peers = Peers(self.config, self.effects, subscribers, hooks, Random(1))

    def _forward(self, info: Any, message: Any, now: float) -> None:
        self.events += message.batch.count
        self.peers.acknowledge(info, message.batch.count, now)

    def handle(self, happened: Input, now: float) -> list[Effect]:
        self.inputs.append(happened)
        if isinstance(happened, Drain):
            self.peers.drain(now)
        self.peers.handle(happened, now)
        self.peers.wake(now)
        effects = self.effects[:]
        self.effects.clear()
        return effects

    def next_deadline(self) -> float:
        return self.peers.timers.next


class Bench:
    """One such Node with its driver and its listener."""

    def __init__(
        self, name: str, folder: Path, connections_max: int = 10, limits: DaemonLimits = DEFAULT_LIMITS
    ) -> None:
        (folder / name).mkdir()
        self.node = PeersNode(name)
        self.driver = Driver(self.node, Records(folder / name))  # type: ignore[arg-type]  # as much Node as it takes
        self.server = PeerServer(self.driver, connections_max, limits)

    async def start(self) -> None:
        await self.server.listen("127.0.0.1", 0)
        self.driver.feed(Reachable(self.server.address, ""))

    async def stop(self) -> None:
        self.driver.feed(Drain())
        await self.server.close()
        await wait_until(lambda: not self.server.connections)
        self.driver.stop()
        assert self.driver.faults == 0

    @property
    def now(self) -> float:
        return self.driver.clock()

    def say(self, act: Any) -> None:
        """Let the Node's Peers do something, and carry it out."""
        act(self.node.peers)
        self.driver.feed(LinkDown(10**9, "nobody"))


async def pair(folder: Path) -> tuple[Bench, Bench]:
    """ann has dialled bob."""
    ann, bob = Bench("ann", folder), Bench("bob", folder)
    await ann.start()
    await bob.start()
    ann.say(lambda peers: peers.keep([bob.server.address], ann.now))
    await wait_until(lambda: ann.node.told and bob.node.told)
    return ann, bob


async def test_two_brokers_talk(tmp_path: Path) -> None:
    ann, bob = await pair(tmp_path)
    assert (ann.node.told, bob.node.told) == ([("up", "bob")], [("up", "ann")])
    page = Control(20, [b"x" * (PAGE_LENGTH_MAX - 100)])
    ann.say(lambda peers: peers.tell(bob.server.address, page, ann.now))
    bob.say(lambda peers: peers.tell(ann.server.address, Control(20, ["hi"]), bob.now))
    await wait_until(lambda: len(ann.node.told) == len(bob.node.told) == 2)
    assert ann.node.told[1] == ("control", ["hi"]) and bob.node.told[1] == ("control", page.body)
    for bench in (ann, bob):
        await bench.stop()
    assert ann.node.told[-1] == ("down", "bob") and bob.node.told[-1] == ("down", "ann")


async def test_both_dial_each_other_and_one_link_is_left(tmp_path: Path) -> None:
    ann, bob = Bench("ann", tmp_path), Bench("bob", tmp_path)
    await ann.start()
    await bob.start()
    ann.say(lambda peers: peers.keep([bob.server.address.replace("127.0.0.1", "localhost")], ann.now))
    bob.say(lambda peers: peers.keep([ann.server.address.replace("127.0.0.1", "localhost")], bob.now))
    await wait_until(lambda: ann.node.told and bob.node.told)
    await wait_until(lambda: ann.server.connections == bob.server.connections == 1)
    assert (ann.node.told, bob.node.told) == ([("up", "bob")], [("up", "ann")])
    for bench in (ann, bob):
        await bench.stop()


async def test_more_events_than_the_sockets_hold_come_through_under_credit(tmp_path: Path) -> None:
    ann, bob = await pair(tmp_path)
    (info,) = ann.node.peers.by_identifier.values()

    def send(peers: Peers) -> None:
        for number in range(50):
            peers.send_events(info, forward(events=4096, base=number, body=b"x" * 100), ann.now)

    ann.say(send)
    await wait_until(lambda: bob.node.events == 50 * 4096)
    await wait_until(lambda: not ann.node.peers.unacknowledged(info))
    assert any(isinstance(one, LinkPaused) for one in ann.node.inputs), "there was more than a buffer full"
    assert any(isinstance(one, LinkResumed) for one in ann.node.inputs)
    for bench in (ann, bob):
        await bench.stop()


async def test_a_link_that_is_cut_comes_back(tmp_path: Path) -> None:
    ann, bob = await pair(tmp_path)
    (connection,) = bob.driver.links.values()
    connection.abort("cut by the test")
    await wait_until(lambda: ann.node.told[-1] == ("up", "bob") and len(ann.node.told) == 3)
    await wait_until(lambda: bob.node.told == [("up", "ann"), ("down", "ann"), ("up", "ann")])
    for bench in (ann, bob):
        await bench.stop()


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nonsense", "a..b:1", "127.0.0.1:99999", "[::1]:1"])
async def test_nobody_there_is_a_failed_dial(tmp_path: Path, address: str) -> None:
    ann = Bench("ann", tmp_path)
    await ann.start()
    ann.driver.dial(address)
    await wait_until(lambda: DialFailed(address) in ann.node.inputs)
    assert ann.server.connections == 0 and not ann.server._dialled
    await ann.stop()


async def test_who_is_never_reached_is_told_once(tmp_path: Path) -> None:
    ann = Bench("ann", tmp_path)
    await ann.start()
    with structlog.testing.capture_logs() as lines:
        for count in range(1, 2 * DIALS_UNTOLD + 1):
            ann.driver.dial("127.0.0.1:1")
            await wait_until(lambda: ann.node.inputs.count(DialFailed("127.0.0.1:1")) >= count)  # noqa: B023
    levels = [line["log_level"] for line in lines if line["event"] == "broker not reached"]
    assert levels == ["debug"] * DIALS_UNTOLD + ["warning"] + ["debug"] * (DIALS_UNTOLD - 1)
    bob = Bench("bob", tmp_path)
    await bob.start()
    ann.server._failures[bob.server.address] = 9
    ann.driver.dial(bob.server.address)
    await wait_until(lambda: ("up", "bob") in ann.node.told)
    assert bob.server.address not in ann.server._failures, "the next failure is news again"
    for bench in (ann, bob):
        await bench.stop()


async def test_failing_addresses_are_remembered_up_to_a_bound(tmp_path: Path) -> None:
    ann = Bench("ann", tmp_path, limits=DaemonLimits(dials=2))
    for port in (1, 2, 3):
        ann.server._tell_failure(f"a:{port}", "nobody is there")
    assert list(ann.server._failures) == ["a:2", "a:3"]


async def test_a_machine_that_answers_nothing_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = Bench("ann", tmp_path, limits=DaemonLimits(dial_seconds=0.05))
    await ann.start()

    async def never(*arguments: Any, **more: Any) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", never)
    ann.driver.dial("127.0.0.1:7401")
    await wait_until(lambda: DialFailed("127.0.0.1:7401") in ann.node.inputs)
    await ann.stop()


async def test_dials_at_one_time_are_bounded(tmp_path: Path) -> None:
    ann = Bench("ann", tmp_path, limits=DaemonLimits(dials=2))
    await ann.start()
    for port in (1, 2, 3):
        ann.driver.dial(f"127.0.0.1:{port}")
    assert len(ann.server._tasks) == 2
    await wait_until(lambda: sum(isinstance(one, DialFailed) for one in ann.node.inputs) == 3)
    await ann.stop()


async def test_the_node_dials_by_an_effect(tmp_path: Path) -> None:
    ann = Bench("ann", tmp_path)
    await ann.start()
    ann.node.effects.append(Dial("127.0.0.1:1"))
    ann.driver.feed(LinkDown(10**9, "nobody"))
    await wait_until(lambda: DialFailed("127.0.0.1:1") in ann.node.inputs)
    await ann.stop()


async def test_over_the_bound_nobody_is_let_in_and_nobody_dialled(tmp_path: Path) -> None:
    ann, bob = Bench("ann", tmp_path, connections_max=1), Bench("bob", tmp_path)
    await ann.start()
    await bob.start()
    guest = await RawClient.connect(ann.server.address)
    await wait_until(lambda: ann.server.connections == 1)
    other = await RawClient.connect(ann.server.address)
    assert (await other.refusal()).code == ErrorCode.TOO_MANY
    await other.close()
    await wait_until(lambda: ann.server.connections == 1)
    ann.driver.dial(bob.server.address)
    await wait_until(lambda: DialFailed(bob.server.address) in ann.node.inputs)
    assert len([one for one in ann.node.inputs if isinstance(one, PeerUp)]) == 1
    await guest.close()
    for bench in (ann, bob):
        await bench.stop()


async def test_a_client_at_the_brokers_port_and_a_broker_at_the_clients_port_are_told(tmp_path: Path) -> None:
    async with live_broker() as broker:
        client = await RawClient.connect(broker.daemon.peers.address)
        await client.say(Hello())
        assert "clients connect to --listen" in (await client.refusal()).text
        peer = await RawClient.connect(broker.address)
        await peer.say(Peer(PEER_VERSION, "eve", 1, "eve:1", "", "headgate", False, {}))
        assert "brokers connect to --peer-listen" in (await peer.refusal()).text
        for one in (client, peer):
            await one.close()


async def test_who_breaks_the_protocol_is_told_and_counted(tmp_path: Path) -> None:
    ann = Bench("ann", tmp_path)
    await ann.start()
    with structlog.testing.capture_logs() as lines:
        eve = await RawClient.connect(ann.server.address)
        await eve.say(Control(1, []))
        assert isinstance((await eve.hear_the_end())[-1], Error)
        await eve.close()
        await wait_until(lambda: not ann.server.connections)
    assert [line["event"] for line in lines if line["log_level"] == "warning"] == ["broker broke the protocol"]
    assert not any(isinstance(one, Received) for one in ann.node.inputs)
    await ann.stop()


async def test_two_whole_brokers_find_together() -> None:
    async with live_broker(name="one") as one:
        async with live_broker(name="two", join=one.daemon.peers.address) as two:
            links = [broker.daemon.node.peers.by_link for broker in (one, two)]
            await wait_until(lambda: all(links))
            assert [info.name for info in (*links[0].values(), *links[1].values())] == ["two", "one"]
            (info,) = links[0].values()
            assert (info.address, info.client_address) == (two.daemon.peers.address, two.address)
        await wait_until(lambda: not links[0])
        assert one.daemon.driver.faults == two.daemon.driver.faults == 0
