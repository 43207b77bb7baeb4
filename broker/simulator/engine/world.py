"""The world: one heap of (time, tie, action), virtual time, one seed; in it Hosts, each of which owns a Node.

`Host` is the counterpart of `daemon/driver.py` and does the same four steps: take an input, handle it, carry out the
effects, arm the deadline again. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any, Protocol, get_args

from headgate.broker.core import Node, NodeConfig
from headgate.broker.core.effects import Close, Dial, Effect, Halt, LogEffect, Mute, Note, Send, Store
from headgate.broker.core.inputs import Input, Wake

__all__ = ["BrokerEnd", "Host", "Violation", "WALL_CLOCK_OFFSET_SECONDS", "Watcher", "World"]

WALL_CLOCK_OFFSET_SECONDS = 1_700_000_000.0
"""What the wall clock of every broker shows at the start of a world."""

_TURN_SECONDS = 1e-6
"""One turn of a host's loop: the delay of an input that waits until others had their turn."""

_LONG_TURN_SECONDS = 0.01
"""The longest turn, where turns are long: several clients have said something by then."""


class BrokerEnd(Protocol):
    """The broker's side of a connection, as far as a Host uses it."""

    def broker_send(self, message: Any) -> None:
        """Queue a message for the client."""

    def broker_close(self) -> None:
        """Close the connection once everything is written."""

    def host_stands_still(self, still: bool) -> None:
        """The broker's process was paused, or resumed: what arrives meanwhile waits in the socket."""

    def host_died(self) -> None:
        """The broker's process ended."""


class Watcher(Protocol):
    """Observer of every step of a Host, before its effects are carried out."""

    def __call__(self, host: Host, happened: Input, effects: Sequence[Effect]) -> None:
        """The Host handled this input, with these effects."""


class Violation(Exception):
    """A promise was broken: its name, and what showed it."""

    def __init__(self, promise: str, text: str) -> None:
        super().__init__(f"{promise}: {text}")
        self.promise = promise
        self.text = text


class World:
    """Holds virtual time, the heap of actions and the random generator. A scenario or a test moves its clock."""

    def __init__(self, seed: int | str, now: float = 0.0) -> None:
        self.random = Random(seed)
        self.now = now
        self.hosts: dict[str, Host] = {}
        self.steps = 0
        self.turns: Random | None = None
        """Set where turns are long: half of the reads that a Host hands in are in the middle of one."""
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._ties = count()

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Schedule an action so many seconds from now."""
        self.at(self.now + seconds, action)

    def at(self, time: float, action: Callable[[], None]) -> None:
        """Schedule an action for that time, or now if it is past. Equal times run in the order of scheduling."""
        heappush(self._heap, (max(time, self.now), next(self._ties), action))

    def step(self) -> bool:
        """Run the next action; False when none is scheduled."""
        if not self._heap:
            return False
        self.now, _, action = heappop(self._heap)
        self.steps += 1
        action()
        return True

    def run_for(self, seconds: float) -> None:
        """Run all actions of the next seconds."""
        end = self.now + seconds
        while self._heap and self._heap[0][0] <= end:
            self.step()
        self.now = end

    def run_until(self, condition: Callable[[], bool], seconds_max: float) -> None:
        """Run actions until the condition holds, which must be within so many seconds."""
        end = self.now + seconds_max
        while not condition():
            assert self._heap and self._heap[0][0] <= end, f"not so within {seconds_max:g} s"
            self.step()


class Host:
    """Runs one Node for one incarnation. While it is paused, inputs wait; they are handled when it is resumed."""

    def __init__(self, world: World, config: NodeConfig, watchers: Sequence[Watcher]) -> None:
        self.world = world
        self.node = Node(config, Random(world.random.getrandbits(64)), world.now)
        self.links: dict[int, BrokerEnd] = {}
        self.records: dict[str, Any] = {}
        self.alive = True
        self.cause = ""
        """The cause of the effects that are being carried out."""
        self.paused = False
        self.dial: Callable[[str], None] = lambda address: None
        self.ask_store: Callable[[LogEffect], None] = lambda effect: None  # carries out what the Node asks of the log
        self.halt: Callable[[str], None] = lambda reason: None
        self._watchers = watchers
        self._waiting: list[Input] = []
        self._armed = float("inf")
        self._generation = 0
        self._carry_out: dict[type, Callable[[Any], None]] = {
            Send: self._send,
            Close: self._close,
            Mute: self._mute,
            Store: self._store,
            Dial: lambda effect: self.dial(effect.address),
            Halt: lambda effect: self.halt(effect.reason),
            Note: lambda effect: None,  # the trace has them
        }
        self._carry_out.update(dict.fromkeys(get_args(LogEffect), self._ask_store))
        world.hosts[config.name] = self

    def feed(self, happened: Input) -> None:
        """Handle one input."""
        if not self.alive:
            return
        if self.paused:
            self._waiting.append(happened)
            return
        effects = self.node.handle(happened, self.world.now)
        cause = self.cause = self.node.cause.text
        for watch in self._watchers:
            watch(self, happened, effects)
        for effect in effects:
            self.cause = cause
            self._carry_out[type(effect)](effect)
        if self.node.next_deadline() != self._armed:
            self._arm()

    def pause(self) -> None:
        """Pause, as SIGSTOP does."""
        self.paused = True
        for link in list(self.links.values()):
            link.host_stands_still(True)

    def resume(self) -> None:
        """Resume: handle what came meanwhile, at the present time."""
        if not self.paused:
            return
        self.paused = False
        waiting, self._waiting = self._waiting, []
        for happened in waiting:
            self.feed(happened)
        for link in list(self.links.values()):
            link.host_stands_still(False)
        if self.alive:
            self._arm()

    def crash(self) -> None:
        """The process ended. What it wrote before may still arrive, or be lost."""
        self.alive = False
        self._generation += 1
        links = list(self.links.values())
        self.links.clear()
        for link in links:
            link.host_died()

    def _arm(self) -> None:
        self._generation += 1  # timers that were armed before do nothing
        deadline = self._armed = self.node.next_deadline()
        if deadline < float("inf"):
            generation, turns = self._generation, self.world.turns
            turn = _TURN_SECONDS if turns is None else turns.uniform(_TURN_SECONDS, _LONG_TURN_SECONDS)
            delay = turn if deadline == float("-inf") else max(_TURN_SECONDS, deadline - self.world.now)
            self.world.after(delay, lambda: self._wake(generation))

    def _wake(self, generation: int) -> None:
        if generation == self._generation and not self.paused:
            self._armed = float("nan")
            self.feed(Wake())

    def _send(self, effect: Send) -> None:
        link = self.links.get(effect.link)
        if link is not None:
            link.broker_send(effect.message)

    def _close(self, effect: Close) -> None:
        link = self.links.get(effect.link)
        if link is not None:
            link.broker_close()

    def _mute(self, effect: Mute) -> None:
        link = self.links.get(effect.link)
        if link is not None:
            link.host_stands_still(effect.on)

    def _store(self, effect: Store) -> None:
        if effect.value is None:
            self.records.pop(effect.key, None)
        else:
            self.records[effect.key] = effect.value

    def _ask_store(self, effect: LogEffect) -> None:
        self.ask_store(effect)
