"""The story of an event: from its PUBLISH on, every step at every broker has its cause, as a trace shows it."""

from __future__ import annotations

from typing import NamedTuple

from headgate.broker.simulator.scenarios import ClusterOptions, LogOptions, Options, play


class Step(NamedTuple):
    """What a trace says of one input: at which broker, why, what it was, and which effects it had."""

    broker: str
    cause: str
    happened: str
    effects: list[str]

    @property
    def kinds(self) -> tuple[str, list[str]]:
        """The input and the effects, each by what it is or by what it says."""
        return _kind(self.happened), [_kind(effect) for effect in self.effects]


def _kind(text: str) -> str:
    for opening in ("messages=[", "message="):
        if opening in text:
            text = text.split(opening, 1)[1]
            break
    return text.split("(", 1)[0]


def steps_of(options: Options) -> list[Step]:
    lines: list[str] = []
    assert play(options, lines.append).failure == ""
    steps: list[Step] = []
    for _, broker, mark, text in (line.split(" ", 3) for line in lines[1:] if line.count(" ") >= 3):
        if mark == "=":
            steps.append(Step(broker, text.strip(), "", []))
        elif mark == "<":
            steps[-1] = steps[-1]._replace(happened=text)
        elif mark == ">":
            steps[-1].effects.append(text)
    return steps


def story(steps: list[Step], cause: str) -> list[Step]:
    return [step for step in steps if cause in step.cause.split("; ")]


def published(steps: list[Step]) -> list[str]:
    return [step.cause for step in steps if step.kinds[0] == "Publish"]


WAY = [
    ("Publish", ["Append"]),
    ("Stored", ["Copy"]),
    ("Copy", ["Append"]),
    ("Stored", ["Control"]),
    ("Control", ["Deliver", "Deliver", "Puback"]),
]
"""Of a stored event that was alone: the disk of its broker, that of a follower; then subscribers and the publisher
hear of it. What follows is at the homes of subscribers of other brokers."""


def test_a_stored_event_is_followed_to_its_follower_and_then_to_subscribers() -> None:
    steps = steps_of(LogOptions(27, seconds=5.0, producers=2, faults=()))
    stories = [story(steps, cause) for cause in published(steps)]
    whole = [
        one
        for one in stories
        if [step.kinds for step in one[: len(WAY)]] == WAY
        and all(step.kinds[0] == "Deliver" for step in one[len(WAY) :])
    ]
    assert len(whole) >= 10
    for one in whole:
        brokers = [step.broker for step in one[: len(WAY)]]
        leader, follower = brokers[0], brokers[2]
        assert brokers == [leader, leader, follower, follower, leader] and leader != follower
        assert one[0].cause.startswith(f"{leader}#") and ": Publish " in one[0].cause


def test_an_event_is_followed_to_subscribers_of_other_brokers() -> None:
    steps = steps_of(ClusterOptions(3, 3, 4.0, 4, ()))
    stories = [story(steps, cause) for cause in published(steps)]
    far = [one for one in stories if any(step.kinds[0] == "Deliver" for step in one)]
    assert far
    for one in far:
        assert {"Deliver", "Forward"} & set(one[0].kinds[1]), "the first broker sends it to another one"
        assert {step.broker for step in one} > {one[0].broker}
    assert any("Deliver" in step.kinds[1] for one in far for step in one[1:]), "which hands it to its client"


def test_every_step_has_a_cause_and_few_begin_with_nothing_but_time() -> None:
    steps = steps_of(ClusterOptions(3, 3, 4.0, 4, ()))
    assert all(step.cause for step in steps)
    assert all("#" in part for step in steps for part in step.cause.split("; "))
    timers = [step.cause for step in steps if step.happened.startswith("Wake")]
    assert timers and all("timers: " in cause for cause in timers)
