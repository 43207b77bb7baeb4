"""Links between simulated brokers: made, broken in every way, and found dead by their own heartbeats."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest

from headgate.broker.core import NodeConfig
from headgate.broker.core.effects import Effect
from headgate.broker.core.inputs import (
    DialFailed,
    Input,
    LinkDown,
    LinkPaused,
    LinkResumed,
    PeerUp,
    Reachable,
    Received,
)
from headgate.broker.simulator.engine import Host, PeerNetwork, PeerNetworkOptions, World
from headgate.broker.simulator.limits import DIAL_SECONDS_MAX
from headgate.protocol.errors import HeadgateError
from headgate.protocol.messages import Control
from tests.support.peer_events import forward


class Setting:
    """Brokers that know each other, and what each was told."""

    def __init__(self, *names: str, seed: int = 1, **options: Any) -> None:
        self.world = World(seed)
        self.failures: list[HeadgateError] = []
        numbers = count(1)
        self.network = PeerNetwork(
            self.world,
            PeerNetworkOptions(**options),
            lambda: next(numbers),
            lambda side, failure: self.failures.append(failure),
        )
        self.inputs: dict[str, list[Input]] = {}
        self.hosts = {name: self.start(name, 1, names) for name in names}
        for name, host in self.hosts.items():
            host.feed(Reachable(f"{name}:1", ""))

    def start(self, name: str, life: int, others: Sequence[str]) -> Host:
        """A broker that is reached at its name."""
        seeds = tuple(f"{other}:1" for other in others if other != name)
        self.inputs[name] = []
        host = Host(self.world, NodeConfig(name=name, incarnation=life, seeds=seeds), (self.watch,))
        host.dial = lambda address: self.network.dial(host, address)
        self.network.hosts[f"{name}:1"] = host
        return host

    def watch(self, host: Host, happened: Input, effects: Sequence[Effect]) -> None:
        """Keep what a broker is told."""
        self.inputs[host.node.config.name].append(happened)

    def told(self, name: str, kind: type[Any]) -> list[Any]:
        """Inputs of one kind since the last call."""
        found = [happened for happened in self.inputs[name] if isinstance(happened, kind)]
        self.inputs[name] = [happened for happened in self.inputs[name] if not isinstance(happened, kind)]
        return found

    def linked(self, name: str) -> list[str]:
        """Whom a broker has a link to."""
        return sorted(info.name for info in self.hosts[name].node.peers.by_link.values())

    def run(self, seconds: float) -> None:
        """Time goes on."""
        self.world.run_for(seconds)


@pytest.fixture
def pair() -> Setting:
    """ann and bob have a link."""
    setting = Setting("ann", "bob")
    setting.run(3.0)
    assert setting.linked("ann") == ["bob"] and setting.linked("bob") == ["ann"]
    assert len(setting.network.links) == 1 and len(setting.network.between("bob", "ann")) == 1
    for name in setting.hosts:
        setting.inputs[name].clear()
    return setting


@pytest.mark.parametrize("seed", range(10))
def test_five_brokers_that_know_each_other_have_one_link_each(seed: int) -> None:
    setting = Setting("ann", "bob", "cid", "dan", "eve", seed=seed)
    setting.run(5.0)
    for name in setting.hosts:
        assert setting.linked(name) == sorted({*setting.hosts} - {name})
    assert len(setting.network.links) == 10
    # Each side of a link that was not used is told so in an ERROR, and nothing else went wrong.
    assert {str(failure) for failure in setting.failures} <= REFUSALS | {f"{one}" for one in decided(setting)}


REFUSALS = {
    "the link that you dialled is the one to use",
    "another link is the one to use",
    "there is a link already",
}


def decided(setting: Setting) -> list[str]:
    """What an acceptor says that has decided for a dial of its own."""
    names = setting.hosts
    return [f"{one} has just decided for another link to {other}" for one in names for other in names]


def test_nobody_listens_there(pair: Setting) -> None:
    pair.network.dial(pair.hosts["ann"], "nobody:1")
    pair.run(0.1)
    assert pair.told("ann", DialFailed) == [DialFailed("nobody:1")]


def test_a_link_that_is_cut_is_told_to_both_once_and_made_again(pair: Setting) -> None:
    (link,) = pair.network.links
    link.cut()
    link.cut()
    pair.run(0.5)
    assert len(pair.told("ann", LinkDown)) == len(pair.told("bob", LinkDown)) == 1
    pair.run(3.0)
    assert pair.linked("ann") == ["bob"] and pair.linked("bob") == ["ann"] and len(pair.network.links) == 1
    assert pair.told("ann", PeerUp) and pair.told("bob", PeerUp)


@pytest.mark.parametrize("ways", [[("ann", "bob")], [("bob", "ann")], [("ann", "bob"), ("bob", "ann")]])
def test_a_way_that_carries_nothing_ends_the_link_by_its_heartbeats(pair: Setting, ways: list[tuple[str, str]]) -> None:
    for one, other in ways:
        pair.network.block(one, other)
    pair.run(0.9)
    assert pair.linked("ann") == ["bob"]
    pair.run(4.0)
    assert pair.linked("ann") == [] == pair.linked("bob")
    assert any("silent for 2 seconds" in str(failure) for host in "ab" for failure in downs(pair, host))
    pair.run(DIAL_SECONDS_MAX + 1.0)
    assert pair.told("ann", DialFailed), "no way leads there"
    pair.network.heal()
    pair.run(5.0)
    assert pair.linked("ann") == ["bob"] and pair.linked("bob") == ["ann"] and len(pair.network.links) == 1


def downs(setting: Setting, initial: str) -> list[str]:
    """Why the links of a broker ended."""
    (name,) = [name for name in setting.hosts if name.startswith(initial)]
    return [down.reason for down in setting.told(name, LinkDown)]


def test_a_killed_process_is_noticed_at_once_and_a_dead_machine_by_silence() -> None:
    for silent, within in ((False, 0.1), (True, 2.6)):
        setting = Setting("ann", "bob")
        setting.run(3.0)
        setting.network.silent_deaths = silent
        setting.hosts["bob"].crash()
        setting.run(0.05)
        assert bool(setting.linked("ann")) == silent
        setting.run(within)
        assert setting.linked("ann") == []
        setting.run(2.0)
        assert setting.told("ann", DialFailed), "nobody listens there any more"
        setting.hosts["bob"] = setting.start("bob", 2, ["ann"])
        setting.hosts["bob"].feed(Reachable("bob:1", ""))
        setting.run(4.0)
        assert setting.linked("ann") == ["bob"] and setting.linked("bob") == ["ann"]


def test_a_host_that_stands_still_reads_nothing_and_goes_on_where_it_was(pair: Setting) -> None:
    bob = pair.hosts["bob"]
    bob.pause()
    taken = len(pair.inputs["bob"])
    pair.run(20.0)
    assert pair.linked("ann") == [] and len(pair.inputs["bob"]) == taken
    bob.resume()
    pair.run(4.0)
    assert pair.linked("ann") == ["bob"] and pair.linked("bob") == ["ann"] and len(pair.network.links) == 1


def test_a_short_pause_costs_nothing(pair: Setting) -> None:
    bob = pair.hosts["bob"]
    (link,) = pair.network.links
    bob.pause()
    pair.run(0.8)
    bob.resume()
    pair.run(2.0)
    assert list(pair.network.links) == [link] and not pair.told("ann", LinkDown) and not pair.told("bob", LinkDown)


def test_a_full_pipe_is_told_and_what_waits_behind_it_comes_in_order() -> None:
    setting = Setting("ann", "bob", seed=2, pipe_high=4096, pipe_low=512)
    setting.run(3.0)
    ann, now = setting.hosts["ann"], setting.world.now
    peers = ann.node.peers
    (info,) = peers.by_identifier.values()
    for number in range(50):
        peers.send_events(info, forward(events=10, base=10 * number, body=b"x" * 100), now)
    ann.feed(LinkDown(10**6, "nobody"))  # any input carries out what was just asked for
    setting.run(1.0)
    assert setting.told("ann", LinkPaused) and setting.told("ann", LinkResumed)
    heard = [message for read in setting.told("bob", Received) for message in read.messages]
    bases = [message.base for message in heard if hasattr(message, "dimensions")]
    assert bases == list(range(0, 500, 10))
    assert any(isinstance(message, Control) for message in heard)
