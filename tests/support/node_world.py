"""A Node with its hands held: messages in, messages out, time by hand, invariants after every step."""

from __future__ import annotations

from random import Random
from typing import Any, TypeVar

from headgate.broker.core import Node, NodeConfig
from headgate.broker.core.effects import Close, Effect, Note, Send
from headgate.broker.core.inputs import Input, LinkDown, Received, Wake
from headgate.protocol.messages import Credit, Hello, Message, Welcome
from headgate.protocol.wire import decode, encode
from tests.support.builders import deliveries_of, make_publish, make_subscribe, quote_batch

__all__ = ["NodeWorld"]

Kind = TypeVar("Kind")


class NodeWorld:
    """One Node; links are numbered as they are opened. What was sent on a link is kept until it is taken."""

    def __init__(self, now: float = 1_000.0, **config: Any) -> None:
        self.now = now
        self.config = NodeConfig(name="broker-1", incarnation=7, **config)
        self.node = Node(self.config, Random(1), now)
        self.notes: list[Note] = []
        self.closed: list[int] = []
        self.effects: list[Effect] = []
        self._sent: dict[int, list[Message]] = {}
        self._links = 0

    def feed(self, happened: Input) -> list[Effect]:
        """One input; every message that comes of it can be written and read."""
        effects = self.node.handle(happened, self.now)
        self.node.validate()
        for effect in effects:
            if isinstance(effect, Send):
                assert type(decode(encode(effect.message))) is type(effect.message)
                self._sent.setdefault(effect.link, []).append(effect.message)
            elif isinstance(effect, Close):
                self.closed.append(effect.link)
            elif isinstance(effect, Note):
                self.notes.append(effect)
        self.effects = effects
        return effects

    def say(self, link: int, *messages: Message) -> list[Message]:
        """A client says this in one read; what it was answered on its link."""
        self.take(link)
        self.feed(Received(link, list(messages)))
        return self.take(link)

    def take(self, link: int) -> list[Message]:
        """What was sent on a link since it was last taken."""
        return self._sent.pop(link, [])

    def take_one(self, link: int, kind: type[Kind]) -> Kind:
        """The only message of this kind that was sent since it was last taken."""
        found = [message for message in self.take(link) if isinstance(message, kind)]
        assert len(found) == 1, found
        return found[0]

    def dial(self, hello: Hello | None = None) -> tuple[int, list[Message]]:
        """A new link that says HELLO; its number and what it was answered."""
        self._links += 1
        return self._links, self.say(self._links, hello if hello is not None else Hello(name="client"))

    def connect(self, **hello: Any) -> int:
        """A new link with a new session."""
        link, answers = self.dial(Hello(**{"name": "client"} | hello))
        assert isinstance(answers[0], Welcome)
        return link

    def key(self, link: int) -> bytes:
        """The session key of a link."""
        return self.node.subscribers.by_link[link].key

    def resume(self, key: bytes, received: int = 0, credit: int = 65_536) -> tuple[int, list[Message]]:
        """A new link that asks to go on with a session."""
        return self.dial(Hello(name="client", session=key, received=received, credit=credit))

    def drop(self, link: int) -> None:
        """The connection is gone."""
        self.feed(LinkDown(link, "cut"))

    def subscriber(self, *subscriptions: tuple[str, str], **hello: Any) -> int:
        """A link with subscriptions 1, 2, … of (pattern, condition)."""
        link = self.connect(**hello)
        for number, (pattern, condition) in enumerate(subscriptions or [("quotes", "")], 1):
            self.say(link, make_subscribe(number, pattern, condition))
        return link

    def publish(self, link: int, *bodies: str) -> None:
        """Batches of one event each, with the sequences that come next."""
        accepted = self.node.subscribers.by_link[link].accepted
        for body in bodies:
            accepted += 1
            self.feed(Received(link, [make_publish(accepted, quote_batch(bodies=[body]))]))

    def delivered(self, link: int) -> list[tuple[int, str]]:
        """(subscription, body) of what came since it was last taken."""
        return deliveries_of(self.take(link))

    def grant(self, link: int, allowed: int, received: int) -> list[Message]:
        """CREDIT."""
        return self.say(link, Credit(allowed, received))

    def wake_at(self, now: float) -> None:
        """Time goes on, with a Wake at every deadline on the way."""
        while self.node.next_deadline() <= now:
            self.now = max(self.now, self.node.next_deadline())
            self.feed(Wake())
        self.now = now
