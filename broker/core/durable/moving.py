"""Moving: of what is handed out to a client, which events DELTA lets pass.

The coordinator hands out whatever matches the rest of the condition. The home compares each event with the one that it
sent last of its topic, and settles those that have not moved at once, as if the client had acknowledged them: to be
told of the others is what the client asked for. So a reference lives as long as the client's part in the subscription,
and the next part begins without any. What this client was sent, has not settled and is handed out again passes whatever
it says, and is the reference then: it is what the client has last.
"""

from __future__ import annotations

from collections.abc import Sequence

from headgate.matching import deltas, parse_condition
from headgate.matching.dynamic import Tally, Triggers, precision_of
from headgate.matching.limits import CANONICAL_BYTES_MAX
from headgate.protocol.data import Batch, Columns, Portion
from headgate.protocol.errors import ProtocolViolation

from .limits import MOVING_SENT_MAX
from .messages import Place

__all__ = ["Moving"]

_CLIENT = 1


class Moving:
    """One client's references, and how far its attributes have to move. Raises MatchingError for no condition."""

    def __init__(self, condition: str, schema: object, tally: Tally) -> None:
        asked = deltas(parse_condition(condition, CANONICAL_BYTES_MAX)) if condition else ()
        names = [one.attribute for one in asked]
        self.triggers = Triggers(names, [precision_of(schema, name) for name in names], tally=tally)
        self.triggers.add(_CLIENT, asked)
        self._sent: dict[tuple[Place, int], int] = {}
        """Events that were sent and are not settled -> the number of their last delivery."""
        self._by_number: dict[int, tuple[Place, int]] = {}

    def passing(self, portion: Portion, place: Place, positions: Sequence[int], first: int) -> list[int]:
        """The rows that the client gets, with delivery numbers from `first` on; their positions in a log."""
        batch = Batch(portion.topics, portion.count, portion.lengths, portion.records, complete=False)
        columns = Columns(batch)
        try:
            found = [columns.get(name) or (None,) * batch.count for name in self.triggers.attributes]
        except ProtocolViolation:  # what it says is not known here: its client may know
            return list(range(batch.count))
        sent = self._sent
        topics, time = batch.topic_list(), portion.time / 1e6
        passing: list[int] = []
        for row in range(batch.count):
            topic = topics[row] if len(topics) > 1 else topics[0]
            event = place, positions[row]
            if event in sent:
                self.triggers.forget(_CLIENT, topic)
            if self.triggers.fire(topic, [column[row] for column in found], time):
                passing.append(row)
                sent[event] = first + row
                self._by_number[first + row] = event
        while len(self._by_number) > MOVING_SENT_MAX:
            self.settled(next(iter(self._by_number)))
        return passing

    def settled(self, number: int) -> None:
        """The client has answered this delivery."""
        event = self._by_number.pop(number, None)
        if event is not None and self._sent[event] == number:
            del self._sent[event]

    def end(self) -> None:
        """The client's part is over."""
        self.triggers.remove(_CLIENT)
