"""A script: a story of a cluster as text, with the trace that it must leave.

A file is blocks of commands, one a line, each block with what was heard while it ran:

    # A comment.
    brokers 3
    connect ann broker-1
    kill broker-3
    advance 3
    ----
    ann < welcome
    broker-1: broker link ended broker='broker-3' life=1 reason='silent for 2 seconds, two heartbeats'

The trace has the notes of brokers that are not routine, and what clients receive. An empty line ends a trace. The clock
stands still between commands; each takes STEP_SECONDS, and `advance` takes as long as it says. There is no chance in
links and disks here: each takes the same time for everything, so a trace changes only when brokers say something else.
`rewritten` is the same text with the trace that it leaves now, to be looked at before it is believed.

    brokers N [replicas=R]          N brokers start and become a cluster; what is heard of that is left out
    start B, restart B              a broker that is not there begins a life; or is killed, and begins another one
    kill B, stop B                  it dies without a word to anybody, or in order
    pause B, resume B               it stands still, and goes on
    cut A B                         the link between two breaks
    apart B, heal                   nothing goes between this broker and the others; everything goes everywhere
    slow A B S                      what goes between them takes S seconds longer
    disk B full|room|fails|well     what the broker's disk does from now on
    disk B backup|restore|lost      a copy of its folder is kept, is put in its place, or there is a new disk
    stream S KEY=VALUE …            the settings of a stream, at all brokers that start from now on
    connect C B                     a client connects, and goes on with its session if the broker knows it
    subscribe C N PATTERN [COND]    its subscription N
    unsubscribe C N
    open C                          it opens itself as a producer
    publish C TOPIC BODY … [K=V]    one batch; the attributes are those of all events in it
    store C TOPIC BODY …            one batch in mode stored
    again C                         what has no answer yet, or was refused, is sent again, in order
    advance S                       time goes by
    logs                            what is in the logs on all disks
"""

from __future__ import annotations

import ast
import shlex
from collections.abc import Callable, Sequence
from typing import Any

from headgate.broker.core import Node
from headgate.broker.core.effects import Effect, Note
from headgate.broker.core.inputs import Input
from headgate.protocol import make_batch
from headgate.protocol.data import Batch, LogKind, decode_record, decode_row
from headgate.protocol.errors import ErrorCode, HeadgateError
from headgate.protocol.messages import (
    Answer,
    Ask,
    Deliver,
    Error,
    Gap,
    Goodbye,
    Hello,
    Message,
    Mode,
    Puback,
    Publish,
    Scope,
    Stamp,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
    Welcome,
)

from ..checkers import names_of
from ..engine import (
    WALL_CLOCK_OFFSET_SECONDS,
    ClusterWorld,
    Connection,
    Host,
    NetworkOptions,
    PeerNetworkOptions,
    Server,
    Topology,
)

__all__ = ["Script", "rewritten"]

STEP_SECONDS = 0.2
_START_SECONDS = 8.0
_LATENCY_SECONDS = 0.001
_RULE = "----"


def rewritten(text: str) -> str:
    """Play a script; returns it with the trace of this run."""
    script, lines, out = Script(), iter(text.splitlines()), []
    for line in lines:
        if line == _RULE:
            for old in lines:
                if not old:
                    break
            out += [_RULE, *script.heard(), ""]
        else:
            out.append(line)
            if line and not line.startswith("#"):
                script.do(line)
    return "\n".join(out).rstrip() + "\n"


class Script:
    """A cluster and its clients, moved by commands, and the trace of what they report."""

    def __init__(self) -> None:
        self._heard: list[str] = []
        self._streams: dict[str, dict[str, Any]] = {}
        self._clients: dict[str, _Client] = {}
        self._backups: dict[str, Any] = {}
        self.world = self._world(2)

    def do(self, line: str) -> None:
        """Execute one command. Raises ValueError."""
        verb, *words = shlex.split(line)
        plain = [word for word in words if "=" not in word or " " in word]
        named = dict(word.split("=", 1) for word in words if "=" in word and " " not in word)
        act: Callable[..., None] | None = getattr(self, f"_do_{verb}", None)
        if act is None:
            raise ValueError(f"there is no command {verb!r}: {line}")
        act(*plain, **{key: _value(value) for key, value in named.items()})
        self.world.run_for(STEP_SECONDS)

    def heard(self) -> list[str]:
        """The trace since the last call."""
        heard, self._heard = self._heard, []
        return heard

    # --- brokers -----------------------------------------------------------------------------------------------------

    def _do_brokers(self, count: str, replicas: int = 2) -> None:
        self.world = self._world(replicas)
        for _ in range(int(count)):
            self.world.add().start()
        self.world.run_for(_START_SECONDS)
        self._heard.clear()

    def _do_start(self, name: str) -> None:
        (self.world.servers.get(name) or self.world.add()).start()

    def _do_restart(self, name: str) -> None:
        self.world.servers[name].crash()
        self.world.servers[name].start()

    def _do_kill(self, name: str) -> None:
        self.world.servers[name].crash(silent=True)

    def _do_stop(self, name: str) -> None:
        self.world.servers[name].leave()

    def _do_pause(self, name: str) -> None:
        self._host(name).pause()

    def _do_resume(self, name: str) -> None:
        self._host(name).resume()

    def _do_cut(self, one: str, other: str) -> None:
        for link in self.world.peers.between(one, other):
            link.cut()

    def _do_apart(self, name: str) -> None:
        self.world.peers.isolate(name, self.world.servers)

    def _do_heal(self) -> None:
        self.world.peers.heal()

    def _do_slow(self, one: str, other: str, seconds: str) -> None:
        self.world.peers.slow_down(one, other, float(seconds))

    def _do_disk(self, name: str, what: str) -> None:
        disk = self.world.servers[name].disk
        if what in ("full", "room"):
            disk.full = what == "full"
        elif what in ("fails", "well"):
            disk.fails = what == "fails"
        elif what == "backup":
            self._backups[name] = disk.copy()
        elif what == "restore":
            disk.restore(self._backups[name])
        elif what == "lost":
            disk.lose_all()
        else:
            raise ValueError(f"a disk does not {what}")

    def _do_stream(self, stream: str, **settings: Any) -> None:
        self._streams[stream] = settings

    def _do_advance(self, seconds: str) -> None:
        self.world.run_for(float(seconds) - STEP_SECONDS)

    def _do_logs(self) -> None:
        for server in self.world.servers.values():
            for name, log in server.disk.content.logs.items():
                if name.kind == LogKind.EVENTS:
                    bodies = [body for entry in log.entries for body in names_of(decode_row(entry.row))]
                    epoch = name.epoch - int(WALL_CLOCK_OFFSET_SECONDS)
                    where = f"{name.stream} of {name.broker}, epoch {epoch}, {log.first} to {log.next}"
                    self._heard.append(f"{server.name} holds {where}: {' '.join(bodies)}".rstrip(": "))

    # --- clients -----------------------------------------------------------------------------------------------------

    def _do_connect(self, name: str, broker: str) -> None:
        client = self._clients.setdefault(name, _Client(name, self._heard_by))
        client.connection = self.world.clients.dial(self._host(broker), client)
        client.connection.client_send(Hello(name=name, session=client.key, received=client.received, credit=1_000_000))

    def _do_subscribe(self, name: str, number: str, pattern: str, condition: str = "") -> None:
        client = self._clients[name]
        client.say(Subscribe(client.next_request(), int(number), pattern, condition, {}))

    def _do_unsubscribe(self, name: str, number: str) -> None:
        client = self._clients[name]
        client.say(Unsubscribe(client.next_request(), int(number)))

    def _do_open(self, name: str) -> None:
        client = self._clients[name]
        client.say(Ask(client.next_request(), "producer.open", {"producer": name, "epoch": 1}))

    def _do_publish(self, name: str, topic: str, *bodies: str, **attributes: Any) -> None:
        self._clients[name].publish(Mode.ACCEPTED, _batch(topic, bodies, attributes))

    def _do_store(self, name: str, topic: str, *bodies: str, **attributes: Any) -> None:
        self._clients[name].publish(Mode.STORED, _batch(topic, bodies, attributes))

    def _do_again(self, name: str) -> None:
        self._clients[name].send_again()

    # --- inside ------------------------------------------------------------------------------------------------------

    def _world(self, replicas: int) -> ClusterWorld:
        peers = PeerNetworkOptions(_LATENCY_SECONDS, _LATENCY_SECONDS, 1.0)
        world = ClusterWorld(1, Topology(replicas=replicas, peers=peers), (self._watch,), self._failed)
        world.clients.options = NetworkOptions(_LATENCY_SECONDS, _LATENCY_SECONDS, 1.0)
        world.prepare = self._prepare
        return world

    def _prepare(self, node: Node) -> None:
        for stream, settings in self._streams.items():
            node.streams.declare(stream, settings)

    def _host(self, name: str) -> Host:
        server: Server = self.world.servers[name]
        assert server.host is not None, f"{name} does not run"
        return server.host

    def _watch(self, host: Host, happened: Input, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Note) and not effect.routine:
                facts = "".join(f" {name}={value!r}" for name, value in effect.facts.items())
                self._heard.append(f"{host.node.config.name}: {effect.event}{facts}")

    def _failed(self, side: str, failure: HeadgateError) -> None:
        """Ignore it: the broker or client concerned reports it in the trace."""

    def _heard_by(self, client: str, text: str) -> None:
        self._heard.append(f"{client} < {text}")


class _Client:
    """A client that sends what commands say, and records what it receives."""

    def __init__(self, name: str, tell: Callable[[str, str], None]) -> None:
        self.name = name
        self.connection: Connection | None = None
        self.key = b""
        self.received = 0
        self._tell = tell
        self._requests = self._sequence = self._events = 0
        self._open = False
        self._unanswered: list[tuple[int, Publish]] = []
        self._refused: dict[int, None] = {}

    def next_request(self) -> int:
        """The number of the next request."""
        self._requests += 1
        return self._requests

    def say(self, message: Any) -> None:
        """Send a message to the broker, if there is a connection."""
        if self.connection is not None:
            self.connection.client_send(message)

    def publish(self, mode: Mode, batch: Batch) -> None:
        """Publish one batch, with a stamp if this is a producer."""
        stamp = Stamp(self.name, 1, self._events, b"digest") if self._open and mode == Mode.STORED else None
        self._events += batch.count if mode == Mode.STORED else 0
        self._send(Publish(0, mode, batch, stamp))

    def send_again(self) -> None:
        """Send everything without an answer again, under new sequences."""
        unanswered, self._unanswered = self._unanswered, []
        self._refused.clear()
        for _, publish in unanswered:
            self._send(publish)

    def on_messages(self, connection: Connection, messages: list[Message]) -> None:
        """Handle the messages of one read."""
        for message in messages if connection is self.connection else ():
            self._hear(message)

    def on_lost(self, connection: Connection, failure: HeadgateError | None) -> None:
        """The connection ended."""
        if connection is self.connection:
            self.connection = None
            self._tell(self.name, "connection lost")

    def _send(self, publish: Publish) -> None:
        self._sequence += 1
        publish = Publish(self._sequence, publish.mode, publish.batch, publish.stamp)
        self._unanswered.append((self._sequence, publish))
        self.say(publish)

    def _hear(self, message: Any) -> None:
        if isinstance(message, Welcome):
            if not message.resumed:
                self._sequence, self.received = 0, 0
            self.key = message.session
            self._tell(self.name, "welcome back" if message.resumed else "welcome")
        elif isinstance(message, Puback):
            sequence = message.sequence
            self._unanswered = [one for one in self._unanswered if one[0] > sequence or one[0] in self._refused]
            self._tell(self.name, f"PUBACK {message.sequence}")
        elif isinstance(message, Suback | Unsuback):
            self._tell(self.name, f"{type(message).__name__.upper()} {message.subscription}")
        elif isinstance(message, Deliver):
            self._delivered(message)
        elif isinstance(message, Gap):
            self._tell(self.name, f"GAP {message.subscription}: {message.count} {message.reason}")
        elif isinstance(message, Answer):
            self._open = self._open or "next" in message.value
            self._tell(self.name, f"ANSWER {_short(message.value)}")
        elif isinstance(message, Error):
            if message.scope == Scope.PUBLISH:
                self._refused[message.reference] = None
            self._tell(self.name, f"ERROR {ErrorCode(message.code).name}: {message.text}")
        elif isinstance(message, Goodbye):
            self._tell(self.name, f"GOODBYE {message.text}".rstrip())

    def _delivered(self, message: Deliver) -> None:
        portion = message.portion
        self.received += portion.count
        pieces = iter(Batch(portion.topics, portion.count, portion.lengths, portion.records).pieces())
        for numbers, count in message.runs():
            bodies = [decode_record(next(pieces))[1].decode() for _ in range(count)]
            self._tell(self.name, f"DELIVER {','.join(map(str, numbers))}: {' '.join(bodies)}")


def _batch(topic: str, bodies: Sequence[str], attributes: dict[str, Any]) -> Batch:
    columns = {name: [value] * len(bodies) for name, value in attributes.items()}
    return make_batch([topic], columns, [body.encode() for body in bodies])


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _short(value: dict[str, Any]) -> str:
    return " ".join(f"{key}={one!r}" for key, one in value.items() if key in ("next", "epoch"))
