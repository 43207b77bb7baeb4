"""Dead letters: an event that was given up goes to the dead-letter topic of its subscription as well.

What was given up is part of a subscription's state, with place, count and reason; that list is what `headgate dead`
shows and replays, and it is on k disks. The topic is for programs that listen: the event is published there once its
end in the subscription is known, with the attributes `dead.subscription`, `dead.reason`, `dead.delivered` and
`dead.topic`. A broker that dies between the two publishes it no more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from headgate.protocol.data import Batch, Portion, Scalar, decode_record, make_batch
from headgate.protocol.errors import HeadgateError, Refused

from ..effects import Effect, Note
from .bodies import Bodies, Found
from .state import DeadLetter, DurableState

__all__ = ["DeadLetters", "OwnBatch"]


class OwnBatch(NamedTuple):
    """A batch that this broker itself publishes."""

    batch: Batch
    subscription: str


class DeadLetters:
    """Makes events of what was given up."""

    def __init__(self, effects: list[Effect], bodies: Bodies) -> None:
        self._effects = effects
        self._bodies = bodies
        self._ready: list[OwnBatch] = []

    def give_up(self, state: DurableState, letters: list[DeadLetter], now: float) -> None:
        """These were given up by this subscription."""
        for letter in letters:
            self._note(state, letter)
            if state.dead_letter:
                run = (letter.position, letter.position + 1)
                self._bodies.fetch(state.stream, letter.place, [run], self._when_fetched(state, letter), now)

    def take(self) -> list[OwnBatch]:
        """Takes out what is to be published."""
        ready, self._ready = self._ready, []
        return ready

    def _when_fetched(self, state: DurableState, letter: DeadLetter) -> Callable[[Found | Refused, float], None]:
        def fetched(found: Found | Refused, now: float) -> None:
            reason = found.text if isinstance(found, Refused) else "" if found.pieces else "retention took it"
            if isinstance(found, Found) and found.pieces:
                try:
                    self._ready.append(OwnBatch(_letter_of(state, letter, found.pieces[0].portion), state.name))
                except HeadgateError as error:
                    reason = str(error)
            if reason:
                facts = {"name": state.name, "topic": state.dead_letter, "reason": reason}
                self._effects.append(Note("dead letter not published", facts, alarming=True))

        return fetched

    def _note(self, state: DurableState, letter: DeadLetter) -> None:
        place = f"{letter.place.broker}@{letter.place.epoch}:{letter.position}"
        facts = {"name": state.name, "place": place, "delivered": letter.delivered, "reason": letter.reason}
        self._effects.append(Note("dead letter", facts, alarming=True))


def _letter_of(state: DurableState, letter: DeadLetter, portion: Portion) -> Batch:
    """The event as it is published under the dead-letter topic."""
    attributes, body, content_type = decode_record(portion.records)
    added: dict[str, Scalar] = {
        "dead.subscription": state.name,
        "dead.reason": letter.reason,
        "dead.delivered": letter.delivered,
        "dead.topic": portion.topics,
    }
    columns: dict[str, list[Scalar]] = {name: [value] for name, value in {**attributes, **added}.items()}
    return make_batch([state.dead_letter], columns, [body], None, content_type)
