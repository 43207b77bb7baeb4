"""The network: everything arrives in order and whole, however it is cut; full pipes, broken connections, heartbeats."""

from __future__ import annotations

import pytest

from headgate.broker.core import NodeConfig
from headgate.broker.core.inputs import Input, LinkDown, LinkPaused, LinkResumed, Received
from headgate.broker.simulator.engine import Connection, Host, Network, NetworkOptions, PlainSession, World
from headgate.protocol.errors import HeadgateError
from headgate.protocol.messages import Answer, Ask, Error, Goodbye, Hello, Message, Ping, Welcome


class FakeClient:
    """Who dialled: keeps what came."""

    def __init__(self) -> None:
        self.heard: list[Message] = []
        self.lost: list[HeadgateError | None] = []

    def on_messages(self, connection: Connection, messages: list[Message]) -> None:
        """Keep them."""
        self.heard += messages

    def on_lost(self, connection: Connection, failure: HeadgateError | None) -> None:
        """Keep it."""
        self.lost.append(failure)


class Setting:
    """A world with one host, one client and one connection."""

    def __init__(self, seed: int = 1, **options: object) -> None:
        self.inputs: list[Input] = []
        self.failures: list[tuple[str, HeadgateError]] = []
        self.world = World(seed)
        self.host = Host(self.world, NodeConfig("broker-1", 1), [self])
        network_options = NetworkOptions(**options)  # type: ignore[arg-type]
        self.network = Network(self.world, network_options, lambda side, error: self.failures.append((side, error)))
        self.client = FakeClient()
        self.connection = self.network.dial(self.host, self.client)
        self.connection.client_send(Hello(name="x", heartbeat_seconds=2.0))

    def __call__(self, host: Host, happened: Input, effects: object) -> None:
        """One step of the host."""
        self.inputs.append(happened)

    def count(self, kind: type[Input]) -> int:
        """How many inputs of a kind there were."""
        return sum(isinstance(happened, kind) for happened in self.inputs)


@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_everything_arrives_in_order_both_ways(checked: bool, seed: int) -> None:
    setting = Setting(seed, checked=checked, whole_probability=0.1)
    setting.world.run_for(0.5)
    for request in range(50):
        setting.connection.client_send(Ask(request, "schema.list", {}))
    setting.world.run_for(5.0)
    assert type(setting.client.heard[0]) is Welcome
    answers = [message for message in setting.client.heard[1:] if not isinstance(message, Ping)]
    assert answers == [Answer(request, []) for request in range(50)]
    assert setting.failures == []
    reads = [happened for happened in setting.inputs if isinstance(happened, Received)]
    assert len({len(read.messages) for read in reads}) > 1, "writes are joined and cut"


def test_a_connection_that_is_cut_loses_what_is_under_way_and_tells_each_side_once() -> None:
    setting = Setting()
    setting.world.run_for(0.5)
    setting.connection.client_send(Ask(1, "status", {}))
    setting.connection.cut()
    setting.connection.cut()
    setting.connection.client_send(Ask(2, "status", {}))
    setting.world.run_for(30.0)
    assert [type(message) for message in setting.client.heard] == [Welcome]
    assert setting.count(LinkDown) == 1
    assert len(setting.client.lost) == 1
    assert setting.network.connections == {} == setting.host.links


def test_a_reader_that_stops_fills_the_pipe_until_the_host_is_told() -> None:
    setting = Setting(checked=False, pipe_high=5, pipe_low=1)
    setting.world.run_for(0.5)
    setting.connection.client_stops_reading()
    for request in range(20):
        setting.connection.client_send(Ask(request, "schema.list", {}))
    setting.world.run_for(5.0)
    assert (setting.count(LinkPaused), setting.count(LinkResumed)) == (1, 0)
    assert len(setting.client.heard) == 1
    setting.connection.client_reads_again()
    setting.world.run_for(5.0)
    assert setting.count(LinkResumed) == 1
    assert len(setting.client.heard) == 21


def test_what_the_broker_said_before_it_closed_still_arrives() -> None:
    setting = Setting()
    setting.world.run_for(0.5)
    setting.connection.broker_close()
    setting.world.run_for(5.0)
    assert type(setting.client.heard[-1]) is Goodbye
    assert setting.client.lost == [None]
    assert setting.count(LinkDown) == 1


def test_silence_is_bridged_by_heartbeats() -> None:
    setting = Setting()
    setting.world.run_for(60.0)
    assert setting.client.lost == []
    assert setting.connection.open


def test_a_client_that_never_reads_is_given_up_after_two_heartbeats() -> None:
    setting = Setting()
    setting.world.run_for(0.5)
    setting.connection.client_stops_reading()
    setting.world.run_for(60.0)
    assert len(setting.client.lost) == 1
    assert setting.count(LinkDown) == 1


def test_a_violation_is_reported_by_the_side_that_found_it() -> None:
    setting = Setting()
    setting.world.run_for(0.5)
    setting.connection.broker.incoming.write(b"\x00\x00\x00\x01\xc1")
    setting.world.run_for(5.0)
    assert setting.failures[0][0] == "broker"
    assert type(setting.client.heard[-1]) is Error


def test_links_are_numbered_and_numbers_never_used_again() -> None:
    setting = Setting()
    setting.connection.cut()
    setting.world.run_for(1.0)
    assert setting.network.dial(setting.host, setting.client).link == 2


def test_the_plain_session_ends_where_a_real_one_would() -> None:
    session = PlainSession()
    assert session.receive([Ping(1), Goodbye(0, ""), Ping(2)], 0.0) == [Ping(1), Goodbye(0, "")]
    assert session.closed
    assert session.receive([Ping(3)], 0.0) == []
    session.lost("late")
    assert session.failure is None
    other = PlainSession()
    other.send(Error(1, 1, 5, "a request is refused"))
    assert not other.closed
    other.lost("cut")
    assert other.closed
    assert str(other.failure) == "cut"
