"""The simulated client: it keeps the rules of the wire, or the simulator would test the wrong thing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headgate.broker.core import NodeConfig
from headgate.broker.core.inputs import Input, Received
from headgate.broker.simulator.checkers import Checker
from headgate.broker.simulator.engine import Host, Network, NetworkOptions, World
from headgate.broker.simulator.workloads import Client, History, Traits, Workload
from headgate.protocol.messages import Credit, Hello, Message, Publish, Subscribe

TRAITS = Traits(bad_probability=0.0, batch_events_max=1)


class Setting:
    """A host and clients that do only what they are told."""

    def __init__(self, *traits: Traits, **config: object) -> None:
        self.heard: list[Message] = []
        self.world = World(3)
        self.history = History()
        node_config = NodeConfig("broker-1", 1, **config)  # type: ignore[arg-type]
        self.host = Host(self.world, node_config, [self.history, self])
        self.network = Network(self.world, NetworkOptions(), self._failed)
        self.clients = [self._client(f"c{number}", one) for number, one in enumerate(traits or (TRAITS,))]
        for client in self.clients:
            client.active = False
            client.dial()
        self.world.run_for(1.0)

    def __call__(self, host: Host, happened: Input, effects: object) -> None:
        """Keep what clients said; it is a watcher."""
        if isinstance(happened, Received):
            self.heard += happened.messages

    def _client(self, name: str, traits: Traits) -> Client:
        watchers = [Checker()]
        return Client(name, self.host, self.network, self.history, watchers, Workload(self.world.random), traits)

    def _failed(self, side: str, error: Exception) -> None:
        raise AssertionError(f"{side}: {error}")

    def said(self, kind: type[Message]) -> list[Message]:
        """What was heard of one kind since the last time it was asked."""
        found = [message for message in self.heard if isinstance(message, kind)]
        self.heard = [message for message in self.heard if not isinstance(message, kind)]
        return found


def test_it_connects_and_is_welcome() -> None:
    setting = Setting()
    (client,) = setting.clients
    assert client.open
    assert client.key in setting.host.node.subscribers.by_key


def test_it_subscribes_and_numbers_are_used_again_after_the_end() -> None:
    setting = Setting()
    (client,) = setting.clients
    for _ in range(3):
        client.subscribe()
    setting.world.run_for(1.0)
    assert sorted(client.subscriptions) == [1, 2, 3]
    assert all(log.acknowledged and log.in_force for log in client.subscriptions.values())
    client.unsubscribe()
    setting.world.run_for(1.0)
    assert len(client.subscriptions) == 2
    client.subscribe()
    assert sorted(client.subscriptions) == [1, 2, 3]


def test_what_it_publishes_is_acknowledged() -> None:
    setting = Setting()
    (client,) = setting.clients
    for _ in range(20):
        client.publish()
    setting.world.run_for(1.0)
    assert not client.unacknowledged
    assert (
        client.acknowledged
        == client.sequence
        == max(message.sequence for message in setting.said(Publish) if isinstance(message, Publish))
    )


@pytest.mark.parametrize("forgetful", [False, True])
def test_after_a_lost_connection_it_goes_on_where_it_was(forgetful: bool) -> None:
    setting = Setting(replace(TRAITS, forgetful=forgetful))
    (client,) = setting.clients
    key = client.key
    client.subscribe()
    client.publish()
    assert client.connection is not None
    client.connection.cut()
    client.publish()
    setting.world.run_for(5.0)
    hello = setting.said(Hello)[-1]
    assert isinstance(hello, Hello)
    assert hello.session == key == client.key
    assert (client.losses, len(client.pending), len(client.unacknowledged)) == (1, 0, 0)
    assert client.subscriptions[1].acknowledged
    assert setting.history.sessions[key].accepted == client.sequence


def test_a_forgetful_client_sends_again_what_the_broker_has() -> None:
    setting = Setting(replace(TRAITS, forgetful=True))
    (client,) = setting.clients
    assert client.connection is not None
    while not client.sequence:
        client.publish()
    while not setting.said(Publish):
        setting.world.step()
    client.connection.cut()
    setting.world.run_for(5.0)
    assert setting.host.node.statistics(setting.world.now).events_duplicate > 0
    assert not client.unacknowledged


def test_after_the_grace_it_begins_anew_and_asks_for_everything_again() -> None:
    setting = Setting(grace_seconds=0.001)
    (client,) = setting.clients
    client.subscribe()
    setting.world.run_for(1.0)
    before, key = client.subscriptions[1], client.key
    client.connection.cut() if client.connection else None
    client.publish()
    under_way = len(client.unacknowledged)
    setting.world.run_for(5.0)
    assert client.key != key
    assert client.unknown_outcomes == under_way
    after = client.subscriptions[1]
    assert after is not before
    assert before.over
    assert after.acknowledged
    assert after.words == before.words


def test_credit_is_granted_as_deliveries_are_taken() -> None:
    setting = Setting(replace(TRAITS, credit=2, publishes=False), TRAITS)
    subscriber, publisher = setting.clients
    for number, pattern in ((1, "quotes"), (2, "alerts")):
        subscriber._subscribe_to(number, pattern, "", False)
    setting.world.run_for(1.0)
    for _ in range(30):
        publisher.publish()
    setting.world.run_for(5.0)
    assert subscriber.received == setting.history.accepted_events == 30
    assert len(setting.said(Credit)) > 10


def test_a_refused_subscription_is_forgotten() -> None:
    setting = Setting()
    (client,) = setting.clients
    client._subscribe_to(1, "quotes/#", "", False)
    setting.world.run_for(1.0)
    assert client.subscriptions == {}
    assert len(setting.said(Subscribe)) == 1


def test_whoever_left_stays_away() -> None:
    setting = Setting()
    (client,) = setting.clients
    client.subscribe()
    setting.world.run_for(1.0)
    client.leave()
    setting.world.run_for(30.0)
    assert setting.host.node.statistics(setting.world.now).sessions == 0
    assert len(setting.said(Hello)) == 1


def test_left_to_itself_it_does_everything() -> None:
    setting = Setting(replace(TRAITS, think_seconds=0.02), replace(TRAITS, think_seconds=0.02))
    for client in setting.clients:
        client.active = True
        client.think()
    setting.world.run_for(20.0)
    kinds = {type(message).__name__ for message in setting.heard}
    assert kinds >= {"Publish", "Subscribe", "Unsubscribe", "Ask"}
    assert sum(client.received for client in setting.clients) > 50
