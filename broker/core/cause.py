"""Says why things happen: each input has a cause, and all that it leads to carries the same one.

So the story of an event can be told: the steps whose cause is its PUBLISH, at whatever broker. (The idea is dask's
`stimulus_id`.) A cause is a short text that names the input with which it all began:

    ann#1734 client feed: Publish 12        broker ann, its 1734th input in this life: what a client said
    bob#88 timers: replication              nothing was said, but a time had come

`Node.cause` is the one of the input that is being handled, or was handled last. A part that puts something off keeps
the text, and says it again (`also`) when that goes on: the answer of a disk has the causes of what was asked. A host
that knows why an input happened says so in the input, as the simulator does for what another broker sent.

Nothing is put into words before it is asked for, so on the way of an event a cause costs two assignments.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final, Protocol

from .inputs import Input, Received, Wake

__all__ = ["CAUSES_MAX", "Cause", "join_causes"]

CAUSES_MAX: Final = 8
"""So many causes one thing has at most: a disk answers for many rows at once."""

_LENGTH_MAX: Final = 120
_BETWEEN: Final = "; "


class _Named(Protocol):
    @property
    def name(self) -> str:
        """The name of a client or of a broker."""


def join_causes(causes: Sequence[str]) -> str:
    """Several causes as one text, each once; at most CAUSES_MAX, the first ones."""
    parts = dict.fromkeys(part for cause in causes for part in cause.split(_BETWEEN) if part)
    return _BETWEEN.join(list(parts)[:CAUSES_MAX])


class Cause:
    """Knows why the present input happened. The Node says which one that is: `happened`, and its `number`."""

    __slots__ = ("_broker", "_given", "_of", "due", "happened", "number", "who")

    def __init__(self, broker: str) -> None:
        self._broker = broker
        self._given: list[str] = []
        self._of = 0
        """The number of the input that these are causes of."""
        self.happened: Input | None = None
        self.number = 0
        self.who: _Named | None = None
        """The client or the broker that said what was received."""
        self.due: Sequence[Hashable] = ()
        """The timers whose time has come."""

    def also(self, cause: str) -> None:
        """Something goes on that was put off, and has this cause."""
        given = self._causes()
        if cause and len(given) < CAUSES_MAX and cause not in given:
            given.append(cause)

    @property
    def text(self) -> str:
        """The cause in words; several are separated by semicolons."""
        given = self._causes()
        if not given:
            given.append(self._describe())
        return given[0] if len(given) == 1 else join_causes(given)

    def _causes(self) -> list[str]:
        if self._of != self.number:
            self._of = self.number
            known = "" if self.happened is None else self.happened.cause
            self._given = [known] if known else []
        return self._given

    def _describe(self) -> str:
        happened = self.happened
        if isinstance(happened, Received):
            speaker = "link " + str(happened.link) if self.who is None else self.who.name
            what = f"{speaker}: {_said(happened.messages)}"
        elif isinstance(happened, Wake):
            what = "timers: " + ", ".join(map(str, self.due))
        else:
            what = type(happened).__name__
        return f"{self._broker}#{self.number} {what}".replace(_BETWEEN, ", ")[:_LENGTH_MAX].rstrip()


def _said(messages: Sequence[Any]) -> str:
    """The last message by its kind and number, and how many came before it."""
    if not messages:
        return "nothing"
    last = messages[-1]
    number = getattr(last, "sequence", getattr(last, "request", ""))
    said = f"{type(last).__name__} {number}".rstrip()
    return said if len(messages) == 1 else f"{said}, after {len(messages) - 1} more"
