"""The tracer of flows: which product files one input passes, how many calls it takes, and which of them go back up.

    python -m tests.support.tracer                    the table of all flows
    python -m tests.support.tracer --files SUBSCRIBE  the files that flow passes, in the order of their first call
    python -m tests.support.tracer --back SUBSCRIBE   its calls back: who calls whom, how often
    python -m tests.support.tracer --json             all of it, for a program

It drives real Nodes in the test worlds (`node_cluster`, `log_cluster`: links of one millisecond, disks of half of one)
and counts with `sys.setprofile` what runs inside `Node.handle`, and nothing of the world around it. A flow goes from
the input that begins it to the input from which its answer comes. In between those inputs count, at any Node, which
bring a message that an earlier step of the flow sent, or what a disk answers; timers that happen to be due do not.
Everything is deterministic.

**File.** A product file counts when one of its functions ran. "core" is below broker/core, matching and protocol.
"any" is every Python file whose functions ran: the standard library, and code that dataclasses generate as one file.

**Call.** Each start of a Python function of core; a generator counts again when it goes on, as for every profiler.
What is written in C has no frame and does not count.

**Call back.** A function of file A is called from file B != A while a function of A is on the stack below B: A called
B, perhaps through others, and B calls A back. It does not matter how B found it: a stored callable, a closure that was
handed over, or a method of an object of A. Files without a frame on the stack are helpers, and calling them is calling
down. When code outside core (a generated constructor, the standard library) stands between B and A, its caller in
core is B. A generator of A that B draws from is data and no call back.

**Link times** is the time from the first input to the last, in delays of one link; a disk takes half of one.

**Polling** in an idle cluster, in percent of all core calls in `handle` and `next_deadline`. "polls": the calls of
functions that ask a part when it wants to be woken (ASKING), or wake it whether it has something to do or not
(POLLING), found by name: whoever renames them changes the two sets. "below asking" and "below polling" add all that
these call; the second has the work in it that was due.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from inspect import CO_GENERATOR
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TypeVar, get_args

from headgate.broker.core import Node
from headgate.broker.core.effects import Effect, Send
from headgate.broker.core.inputs import Input, LogInput, Received
from headgate.protocol.messages import (
    Ack,
    Acked,
    AckVerb,
    Credit,
    Handed,
    LogChunk,
    Message,
    Mode,
    Puback,
    ReadLog,
    Suback,
    Subscribe,
)
from tests.support.builders import make_publish, quote_batch
from tests.support.log_cluster import LogCluster
from tests.support.node_cluster import LATENCY_SECONDS, Client, NodeCluster

__all__ = ["CORE", "FLOWS", "POLLING", "Flow", "Function", "Step", "Tracer", "idle_shares", "main", "table"]

Thing = TypeVar("Thing")


ROOT = Path(__file__).resolve().parents[2]
CORE = ("broker/core/", "matching/", "protocol/")
ASKING = frozenset({"next_deadline", "deadline", "_look_at_clock"})
POLLING = ASKING | {"wake", "tick"}
IDLE_SECONDS = 60.0
CHECK_EVERY = 1_000_000
"""The worlds need not check the invariants of every Node here: other tests do."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function by its file (relative to the project) and its qualified name."""

    file: str
    name: str


_FUNCTIONS: dict[int, tuple[CodeType, Function]] = {}
"""By identity, and keeping the code: equal functions of two files are equal code."""


def function_of(code: CodeType) -> Function:
    """Where this code is written."""
    known = _FUNCTIONS.get(id(code))
    if known is None:
        file = "<generated>"
        if not code.co_filename.startswith("<"):
            path = Path(code.co_filename).resolve()
            file = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.as_posix()
        known = _FUNCTIONS[id(code)] = code, Function(file, code.co_qualname)
    return known[1]


@dataclass(slots=True)
class Step:
    """One input of one Node, and what ran because of it."""

    happened: Any
    calls: Counter[Function] = field(default_factory=Counter)
    """Of core functions, in the order of their first calls."""
    others: Counter[Function] = field(default_factory=Counter)
    """Of all others."""
    back: Counter[tuple[Function, Function]] = field(default_factory=Counter)
    """(caller, called)"""
    below_asking: int = 0
    """Core calls of a function in ASKING or below one."""
    below_polling: int = 0
    """The same for POLLING."""
    effects: list[Effect] = field(default_factory=list)


class Tracer:
    """Records a Step for every outermost call of one of the `roots` (methods of a state machine) while it is active."""

    def __init__(
        self, *roots: Callable[..., Any], product: Sequence[str] = CORE, began: Callable[[], None] = lambda: None
    ) -> None:
        self._roots = [root.__code__ for root in roots or (Node.handle,)]
        self._product = tuple(product)
        self._began = began
        self.steps: list[Step] = []
        self._step: Step | None = None
        self._stack: list[_Entry] = []
        self._working: Counter[str] = Counter()
        """Files by their frames on the stack."""

    @contextmanager
    def active(self) -> Iterator[Tracer]:
        """Records what happens inside."""
        before = sys.getprofile()
        sys.setprofile(self._heard)
        try:
            yield self
        finally:
            sys.setprofile(before)

    def _heard(self, frame: FrameType, event: str, value: Any) -> None:
        if event == "call":
            if self._step is None and any(frame.f_code is root for root in self._roots):
                self._step = self._begin(frame)
            if self._step is not None:
                self._called(self._step, frame)
        elif event == "return" and self._step is not None:
            entry = self._stack.pop()
            self._working[entry.function.file] -= 1
            if not self._stack:
                if isinstance(value, list):
                    self._step.effects = value
                self._step = None

    def _begin(self, frame: FrameType) -> Step:
        step = Step(frame.f_locals[frame.f_code.co_varnames[1]] if frame.f_code.co_argcount > 1 else None)
        self.steps.append(step)
        self._began()
        return step

    def _called(self, step: Step, frame: FrameType) -> None:
        function = function_of(frame.f_code)
        outer = self._stack[-1] if self._stack else _BOTTOM
        name, caller = frame.f_code.co_name, outer.caller
        entry = _Entry(function, caller, outer.asking or name in ASKING, outer.polling or name in POLLING)
        if function.file.startswith(self._product):
            entry.caller = function
            step.calls[function] += 1
            step.below_asking += entry.asking
            step.below_polling += entry.polling
            goes_up = caller is not None and caller.file != function.file and self._working[function.file] > 0
            if caller is not None and goes_up and not frame.f_code.co_flags & CO_GENERATOR:
                step.back[caller, function] += 1
        else:
            step.others[function] += 1
        self._stack.append(entry)
        self._working[function.file] += 1


@dataclass(slots=True)
class _Entry:
    """One frame of the stack inside a root."""

    function: Function
    caller: Function | None
    """The nearest core function, this one included."""
    asking: bool
    polling: bool
    """Whether its name, or that of a frame around it, is in ASKING and POLLING."""


_BOTTOM = _Entry(Function("", ""), None, False, False)


# --- Flows -----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Flow:
    """What one flow took, over all Nodes that had a part in it."""

    steps: list[Step]
    said: list[tuple[str, str, Message]] = field(default_factory=list)
    """Between brokers: from, to, what."""
    seconds: float = 0.0

    def causes(self, happened: Input) -> bool:
        """Whether this input follows from what was said until now, or is an answer of a disk."""
        if isinstance(happened, Received):
            return any(one is message for one in happened.messages for _, _, message in self.said)
        return isinstance(happened, get_args(LogInput))

    @property
    def calls(self) -> Counter[Function]:
        """Core functions that ran, in order."""
        return _sum(step.calls for step in self.steps)

    @property
    def files(self) -> list[str]:
        """Core files in the order of their first call."""
        return list(dict.fromkeys(function.file for function in self.calls))

    @property
    def back(self) -> Counter[tuple[Function, Function]]:
        """Calls back: (caller, called)."""
        return _sum(step.back for step in self.steps)

    @property
    def kinds(self) -> Counter[str]:
        """Messages between brokers by kind, as their envelope names it."""
        return Counter(kind_of(message) for _, _, message in self.said)

    @property
    def numbers(self) -> dict[str, float]:
        """What the table shows."""
        calls, others = self.calls, _sum(step.others for step in self.steps)
        return {
            "inputs": len(self.steps),
            "files": len(self.files),
            "any files": len({function.file for function in [*calls, *others]}),
            "functions": len(calls),
            "calls": calls.total(),
            "any calls": calls.total() + others.total(),
            "calls back": self.back.total(),
            "messages": len(self.said),
            "link times": round(self.seconds / LATENCY_SECONDS, 1),
        }


def _sum(counters: Iterable[Counter[Thing]]) -> Counter[Thing]:
    """All together, in the order of first mention."""
    found: Counter[Thing] = Counter()
    for counter in counters:
        found.update(counter)
    return found


def kind_of(message: Message) -> str:
    """The name of an envelope, and the number of what is in it, as protocol/SPEC.md has it."""
    kind = getattr(message, "kind", None)
    return type(message).__name__ if kind is None else f"{type(message).__name__} {int(kind)}"


def _trace(cluster: NodeCluster, begin: Callable[[], Any], answered: Callable[[], bool]) -> Flow:
    """From `begin` until it is answered."""
    said: list[int] = []
    """By step: how much had been said between brokers when it began."""
    tracer, now = Tracer(began=lambda: said.append(len(cluster.said))), cluster.now
    with tracer.active():
        begin()
        caused = len(tracer.steps)
        cluster.until(answered)
    flow, bounds = Flow([], seconds=cluster.now - now), zip(said, [*said[1:], len(cluster.said)], strict=True)
    for number, (step, (first, last)) in enumerate(zip(tracer.steps, bounds, strict=True)):
        if number < caused or flow.causes(step.happened):
            flow.steps.append(step)
            flow.said += cluster.said[first:last]
    assert flow.steps[-1] is tracer.steps[-1], "the answer came of something else, perhaps of a timer"
    return flow


def _one_broker() -> NodeCluster:
    cluster = NodeCluster(check_every=CHECK_EVERY)
    cluster.start("b0", [])
    cluster.run(10.0)
    return cluster


def _subscribed(cluster: NodeCluster, home: str, condition: str, number: int = 1, **hello: Any) -> Client:
    client = cluster.connect(home, **hello)
    client.subscribe(number, "quotes", condition)
    cluster.until(lambda: bool(client.of(Suback)))
    cluster.run(1.0)
    client.take()
    return client


def publish() -> Flow:
    """PUBLISH on one broker with one subscriber there that gets the event; not the first of its kind."""
    cluster = _one_broker()
    subscriber, publisher = _subscribed(cluster, "b0", "price > 10"), cluster.connect("b0")
    publisher.publish(quote_batch(price=[11.0]))
    subscriber.take()
    publisher.take()
    batch = quote_batch(price=[12.0])

    def answered() -> bool:
        return bool(publisher.of(Puback) and subscriber.bodies)

    return _trace(cluster, lambda: publisher.publish(batch), answered)


def _subscribe(cluster: NodeCluster, home: str, condition: str) -> Flow:
    client = cluster.connect(home)
    client.take()
    return _trace(cluster, lambda: client.subscribe(1, "quotes", condition), lambda: bool(client.of(Suback)))


def subscribe() -> Flow:
    """SUBSCRIBE on one broker until SUBACK, the first one there: its attribute was never used before."""
    return _subscribe(_one_broker(), "b0", "price > 10")


def subscribe_again() -> Flow:
    """SUBSCRIBE on one broker until SUBACK; its attribute is in use."""
    cluster = _one_broker()
    _subscribed(cluster, "b0", "price > 10")
    return _subscribe(cluster, "b0", "price > 12")


def subscribe_cluster() -> Flow:
    """SUBSCRIBE in a cluster of three until SUBACK, its attribute in use at every broker: the slowest of them."""
    cluster = _cluster(3)
    for home in cluster.hosts:
        _subscribed(cluster, home, "price > 10")
    return _longest(_subscribe(cluster, home, "price > 12") for home in cluster.hosts)


def first_use(brokers: int) -> Flow:
    """SUBSCRIBE with an attribute that nobody used before, until SUBACK: the broker where that takes longest."""
    cluster = _cluster(brokers)
    return _longest(_subscribe(cluster, home, f"fresh{number} = 1") for number, home in enumerate(cluster.hosts))


def credit() -> Flow:
    """CREDIT of a subscriber that has used up its own; one event waits and goes out."""
    cluster = _one_broker()
    subscriber, publisher = _subscribed(cluster, "b0", "price > 10", credit=1), cluster.connect("b0")
    for _ in range(2):
        publisher.publish(quote_batch(price=[11.0]))
    cluster.run(1.0)
    assert len(subscriber.bodies) == 1
    subscriber.take()
    return _trace(cluster, lambda: subscriber.send(Credit(100, 1)), lambda: bool(subscriber.bodies))


def stored_publish() -> Flow:
    """PUBLISH of a stored event in a cluster of three until PUBACK: on the disk of its broker and of a follower."""
    cluster = LogCluster(3, check_every=CHECK_EVERY)
    client = cluster.connect("b0")
    cluster.store(client, "first")
    cluster.run(1.0)
    client.take()
    return _trace(cluster, lambda: cluster.store(client, "second"), lambda: bool(client.of(Puback)))


def copied() -> Flow:
    """The last step of a stored PUBLISH: COPIED of a follower comes to the leader, which answers its client."""
    (step, *others) = [
        step
        for step in stored_publish().steps
        if any(isinstance(effect, Send) and isinstance(effect.message, Puback) for effect in step.effects)
    ]
    assert not others and isinstance(step.happened, Received), "PUBACK waits for the follower, whose disk is later"
    return Flow([step])


def replay() -> Flow:
    """READ_LOG of one stored event until its LOG_CHUNK, the answer of the disk included."""
    cluster = LogCluster(check_every=CHECK_EVERY)
    cluster.start("b0", [])
    cluster.run(10.0)
    client = cluster.connect("b0")
    cluster.store(client, "event")
    cluster.run(1.0)
    name = cluster.name("b0")
    question = ReadLog(1, name.broker, name.epoch, name.kind, name.stream, 0)
    return _trace(cluster, lambda: client.send(question), lambda: bool(client.of(LogChunk)))


def _durable() -> tuple[LogCluster, Client, Client]:
    """Three brokers and a durable subscription: its publisher is at b0, its coordinator b1, and its client at b2."""
    cluster = LogCluster(3, check_every=CHECK_EVERY)
    publisher, subscriber = cluster.connect("b0"), cluster.connect("b2")
    durables = cluster.node("b0").durables
    name = next(f"d{at}" for at in range(99) if durables.coordinator_name(f"d{at}") == "b1")
    subscriber.send(Subscribe(1, 1, "quotes", "price > 10", {"durable": name}))
    cluster.until(lambda: bool(subscriber.of(Suback)))
    cluster.run(1.0)
    for _ in range(2):  # the first makes the log known, and reserves a mark on disks
        publisher.sequence += 1
        publisher.send(make_publish(publisher.sequence, quote_batch(price=[11.0]), Mode.STORED))
        cluster.run(1.0)
    handed = subscriber.of(Handed)[-1]
    subscriber.send(Ack(1, 1, AckVerb.ACK, [0, handed.first]))
    cluster.until(lambda: bool(subscriber.of(Acked)))
    cluster.run(3.0)
    subscriber.take()
    return cluster, publisher, subscriber


def durable_publish() -> Flow:
    """PUBLISH of a stored event in a cluster of three until a durable subscriber at another broker is handed it."""
    cluster, publisher, subscriber = _durable()
    message = make_publish(publisher.sequence + 1, quote_batch(price=[11.0]), Mode.STORED)
    return _trace(cluster, lambda: publisher.send(message), lambda: bool(subscriber.of(Handed)))


def durable_ack() -> Flow:
    """ACK of an event of a durable subscription until its ACKED: the cursor is on the disks of two brokers."""
    cluster, publisher, subscriber = _durable()
    publisher.send(make_publish(publisher.sequence + 1, quote_batch(price=[11.0]), Mode.STORED))
    cluster.until(lambda: bool(subscriber.of(Handed)))
    cluster.run(3.0)
    ack = Ack(2, 1, AckVerb.ACK, [subscriber.of(Handed)[0].first] * 2)
    return _trace(cluster, lambda: subscriber.send(ack), lambda: bool(subscriber.of(Acked)))


def _cluster(brokers: int) -> NodeCluster:
    return NodeCluster(brokers, check_every=CHECK_EVERY)


def _longest(flows: Iterable[Flow]) -> Flow:
    return max(flows, key=lambda flow: (flow.seconds, len(flow.said), len(flow.steps)))


FLOWS: dict[str, Callable[[], Flow]] = {
    "PUBLISH": publish,
    "SUBSCRIBE": subscribe,
    "SUBSCRIBE-again": subscribe_again,
    "SUBSCRIBE-cluster": subscribe_cluster,
    "COPIED": copied,
    "CREDIT": credit,
    "stored-PUBLISH": stored_publish,
    "replay": replay,
    "durable-PUBLISH": durable_publish,
    "durable-ACK": durable_ack,
    "first-use-3": partial(first_use, 3),
    "first-use-5": partial(first_use, 5),
    "first-use-9": partial(first_use, 9),
}


def idle_shares(seconds: float = IDLE_SECONDS, brokers: int = 3) -> dict[str, float]:
    """What an idle cluster calls in so many seconds of its time, and the shares in percent of what polls."""
    cluster = _cluster(brokers)
    tracer = Tracer(Node.handle, Node.next_deadline)
    with tracer.active():
        cluster.run(seconds)
    calls = _sum(step.calls for step in tracer.steps)
    polls = sum(count for function, count in calls.items() if function.name.rpartition(".")[2] in POLLING)

    def share(count: int) -> float:
        return round(100 * count / calls.total(), 1)

    return {
        "inputs": sum(step.happened is not None for step in tracer.steps),
        "calls": calls.total(),
        "polls %": share(polls),
        "below asking %": share(sum(step.below_asking for step in tracer.steps)),
        "below polling %": share(sum(step.below_polling for step in tracer.steps)),
    }


# --- The command -----------------------------------------------------------------------------------------------------


def table(flows: dict[str, Flow]) -> str:
    """One line a flow."""
    rows = [(name, flow.numbers, flow.kinds) for name, flow in flows.items()]
    heads = list(rows[0][1])
    lines = [f"{'flow':<18}" + "".join(f"{head:>{len(head) + 2}}" for head in heads) + "  kinds of messages"]
    for name, numbers, kinds in rows:
        cells = "".join(f"{numbers[head]:>{len(head) + 2}}" for head in heads)
        lines.append(f"{name:<18}{cells}  " + ", ".join(f"{kind} x {count}" for kind, count in kinds.items()))
    return "\n".join(line.rstrip() for line in lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """What the head of this file says."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.tracer", description="the tracer of flows")
    parser.add_argument("--files", metavar="FLOW", choices=FLOWS, help="the files that it passes, in order")
    parser.add_argument("--back", metavar="FLOW", choices=FLOWS, help="its calls back")
    parser.add_argument("--json", action="store_true", help="everything, for a program")
    options = parser.parse_args(arguments)
    write = sys.stdout.write
    if options.files:
        write("".join(f"{file}\n" for file in FLOWS[options.files]().files))
    elif options.back:
        for (caller, called), count in FLOWS[options.back]().back.items():
            write(f"{count:4} {caller.file} {caller.name} -> {called.file} {called.name}\n")
    else:
        flows, idle = {name: run() for name, run in FLOWS.items()}, idle_shares()
        if options.json:
            told = {name: flow.numbers | {"kinds": flow.kinds, "passes": flow.files} for name, flow in flows.items()}
            write(json.dumps({"flows": told, "idle": idle}, indent=2) + "\n")
        else:
            write(f"{table(flows)}\n\n")
            write(f"idle cluster of 3, {IDLE_SECONDS:g} s: {', '.join(f'{n} {v:g}' for n, v in idle.items())}\n")


if __name__ == "__main__":
    main()
