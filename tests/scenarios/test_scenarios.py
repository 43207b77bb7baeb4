"""Scenarios as text: commands of clients, and below each what the broker answers to whom.

    > ann subscribe 1 quotes/* WHERE price > 8      a command
      ann: SUBACK 1                                 what came of it, in order

Set HEADGATE_REWRITE to write what happens now into the files, then read the difference before it is kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from headgate.broker.core.inputs import Drain, LinkPaused, LinkResumed
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import (
    Credit,
    Deliver,
    Error,
    Gap,
    Goodbye,
    Interest,
    Message,
    Puback,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
    Welcome,
)
from tests.support.builders import deliveries_of, make_publish, quote_batch
from tests.support.node_world import NodeWorld

FILES = sorted(Path(__file__).parent.glob("*.txt"))


class Scenario:
    """A Node with outboxes of 1400 bytes, and clients known by name."""

    def __init__(self) -> None:
        self.world = NodeWorld(outbox_bytes=1400)
        self.links: dict[str, int] = {}
        self.keys: dict[str, bytes] = {}
        self.sequences: dict[str, int] = {}
        self.commands: dict[str, Callable[[str, list[str]], None]] = {
            "connect": self._connect,
            "resume": self._resume,
            "subscribe": self._subscribe,
            "unsubscribe": lambda name, words: self._say(name, Unsubscribe(1, int(words[0]))),
            "publish": self._publish,
            "repeat": lambda name, words: self._publish(name, words, int(words.pop(0))),
            "credit": lambda name, words: self._say(name, Credit(int(words[0]), int(words[1]))),
            "goodbye": lambda name, words: self._say(name, Goodbye(0, "")),
            "stops": lambda name, words: self._feed(LinkPaused(self.links[name])),
            "reads": lambda name, words: self._feed(LinkResumed(self.links[name])),
            "vanishes": lambda name, words: self.world.drop(self.links[name]),
        }

    def play(self, command: str) -> list[str]:
        """Carry a command out; what was said to whom."""
        name, *words = command.split()
        if name == "wait":
            self.world.wake_at(self.world.now + float(words[0]))
        elif name == "drain":
            self.world.feed(Drain())
        else:
            self.commands[words.pop(0)](name, words)
        said = []
        for client, link in self.links.items():
            said += [f"{client}: {line}" for message in self.world.take(link) for line in lines_of(message)]
        return said

    def _connect(self, name: str, words: list[str]) -> None:
        hello = {key: int(value) for key, value in (word.split("=") for word in words)}
        self.sequences[name] = 0
        self.links[name] = self.world._links + 1
        self.world.connect(name=name, **hello)
        self.keys[name] = self.world.key(self.links[name])
        self.world._sent.setdefault(self.links[name], []).insert(0, Welcome(1, "", b"", False, 0, 0, 1.0))

    def _resume(self, name: str, words: list[str]) -> None:
        link, answers = self.world.resume(self.keys[name], int(words[0]), int(words[1]))
        if name in self.links and (rest := self.world.take(self.links[name])):
            answers = rest + answers
        self.links[name] = link
        self.world._sent[link] = answers

    def _subscribe(self, name: str, words: list[str]) -> None:
        head, _, condition = " ".join(words).partition(" WHERE ")
        number, pattern = head.split()
        self._say(name, Subscribe(int(number), int(number), pattern, condition))

    def _publish(self, name: str, words: list[str], sequence: int = 0) -> None:
        if not sequence:
            self.sequences[name] += 1
            sequence = self.sequences[name]
        topic, body, *pairs = words
        columns = {key: [float(value)] for key, value in (pair.split("=") for pair in pairs)}
        self._say(name, make_publish(sequence, quote_batch(topic, [body], None, **columns)))

    def _say(self, name: str, message: Message) -> None:
        link = self.links[name]
        self.world._sent[link] = self.world.say(link, message)

    def _feed(self, happened: LinkPaused | LinkResumed) -> None:
        self.world.feed(happened)


def lines_of(message: Message) -> list[str]:
    """A message as people would say it."""
    match message:
        case Welcome(resumed=resumed, accepted=accepted):
            return [f"WELCOME {'back' if resumed else 'new'}, batches {accepted}"]
        case Deliver():
            return [f"DELIVER {number} {body}" for number, body in deliveries_of([message])]
        case Gap(subscription, count, reason):
            return [f"GAP {subscription} {count} ({reason})"]
        case Error(code, scope, reference):
            return [f"ERROR {ErrorCode(code).name} {('connection', 'request', 'publish')[scope]} {reference}"]
        case Goodbye(code):
            return [f"GOODBYE {ErrorCode(code).name}"]
        case Suback(_, number) | Unsuback(_, number):
            return [f"{type(message).__name__.upper()} {number}"]
        case Puback(sequence):
            return [f"PUBACK {sequence}"]
        case Interest(stream, attributes):
            return [f"INTEREST {stream} {attributes}"]
    raise AssertionError(f"no words for {message}")


def played(text: str) -> str:
    """The scenario with what happens now."""
    scenario, lines = Scenario(), []
    for line in text.splitlines():
        if line.startswith("> "):
            lines += [line, *(f"  {said}" for said in scenario.play(line[2:]))]
        elif not line.startswith("  "):
            lines.append(line)
    return "\n".join(lines) + "\n"


def test_there_are_scenarios() -> None:
    assert len(FILES) >= 4


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_scenario_goes_as_it_is_told(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    now = played(text)
    if os.environ.get("HEADGATE_REWRITE"):
        file.write_text(now, encoding="utf-8")
    assert now == text
