"""Events between two brokers: credit, what waits, what is under way, and an exact account of what was lost.

Both kinds of events share the credit and the count of a link. DELIVERs wait in the session's outbox and are handled by
`delivery/subscribers.py`, like those of any client. FORWARDs wait here, within the same bounds; what was sent of them
stands in the *ledger* until the other side is done with it.

    sent          events that went out, in this life of both        session.sent
    arrived       those that came in there: the first CREDIT of a link says it, and the sender counts on from there
    acknowledged  those that the other side is done with: every later CREDIT says it

When a link breaks, it is unknown what of `sent` arrived. So what was never sent is handed back at once, and what is in
the ledger waits for the next link of the same two lives, whose first CREDIT tells it exactly. When there is none
within LOSS_SECONDS_MAX, or the other broker comes back in a new life, all of it counts as lost: perhaps too much,
never too little.
"""

from __future__ import annotations

from headgate.protocol.errors import ProtocolViolation
from headgate.protocol.limits import CREDIT_MAX, PEER_CREDIT_DEFAULT
from headgate.protocol.messages import Credit, Deliver, Forward

from ..config import NodeConfig
from ..delivery import ClientSession, Subscribers, stream_of
from ..effects import Effect, Send
from ..timers import Timers
from .greeting import Entry, PeerHooks, PeerInfo
from .limits import ACKNOWLEDGE_SECONDS, FORWARD_OVERHEAD_BYTES, LEDGER_LENGTH_MAX, LOSS_SECONDS_MAX

__all__ = ["PeerTraffic"]

_WINDOW = PEER_CREDIT_DEFAULT


class PeerTraffic:
    """Sends events over all links under credit, and counts what was sent, what came and what was lost."""

    def __init__(
        self,
        config: NodeConfig,
        effects: list[Effect],
        subscribers: Subscribers,
        hooks: PeerHooks,
        timers: Timers,
    ) -> None:
        self._timers = timers
        self._config = config
        self._effects = effects
        self._subscribers = subscribers
        self._hooks = hooks
        self.draining: dict[int, PeerInfo] = {}
        self.forwards_bytes = 0
        self.sent = self.lost = 0

    # --- out ---------------------------------------------------------------------------------------------------------

    def send(self, info: PeerInfo, message: Forward | Deliver, now: float) -> None:
        """Send it, or keep it within the bounds."""
        if isinstance(message, Deliver):
            self._subscribers.deliver(info.session, message.routes, message.portion)
        elif self._may_forward(info) and not info.forwards:
            self._send_forward(info, message)
        else:
            size = _size(message)
            info.forwards.append(message)
            info.forwards_bytes += size
            self.forwards_bytes += size
            self._subscribers.outbox_bytes += size
            self._relieve(info, now)

    def pump(self, info: PeerInfo) -> None:
        """Send what waits, as far as link and credit allow, a step's worth; the two kinds take turns in being first."""
        session = info.session
        if info.link is None or session.paused:
            return
        info.forwards_turn = not info.forwards_turn
        if info.forwards_turn:
            self._pump_forwards(info)
            self._subscribers.pump(session)
        else:
            self._subscribers.pump(session)
            self._pump_forwards(info)

    def credited(self, info: PeerInfo, message: Credit, now: float) -> None:
        """A CREDIT came. Raises ProtocolViolation."""
        session = info.session
        if not info.counted:
            self.check_count(session, message)
            self.count(info, message, now)
        else:
            if not info.acknowledged <= message.received <= session.sent:
                text = f"{message.received} is not between {info.acknowledged} and {session.sent}"
                raise ProtocolViolation(f"CREDIT: received {text}")
            info.acknowledged = message.received
            session.received = max(session.received, message.received)
            session.allowed = max(session.allowed, message.allowed)
            while info.ledger and info.ledger[0].position <= message.received:
                info.ledger.popleft()
            if session.announced:
                self._subscribers.heard(session)
        self.pump(info)

    # --- in ----------------------------------------------------------------------------------------------------------

    def came(self, info: PeerInfo, count: int) -> None:
        """So many events came in."""
        info.got += count
        if info.got - info.told_got >= _WINDOW // 2:
            self._tell_handled_now(info)

    def acknowledge(self, info: PeerInfo, count: int, now: float) -> None:
        """We are done with so many of the events that came in."""
        info.handled += count
        assert info.handled <= info.got, "more events were acknowledged than came in"
        if info.link is not None:
            if info.handled - info.told_handled >= _WINDOW // 2:
                self._tell_handled_now(info)
            else:
                info.acknowledge_at = min(info.acknowledge_at, now + ACKNOWLEDGE_SECONDS)

    def tell_handled(self, info: PeerInfo) -> None:
        """Say what was not said yet."""
        info.acknowledge_at = float("inf")
        if info.link is not None and info.handled > info.told_handled:
            self._tell_handled_now(info)

    # --- links -------------------------------------------------------------------------------------------------------

    def begin(self, info: PeerInfo) -> None:
        """There is a link: say what came in so far; nothing goes out before the other side said the same."""
        assert info.link is not None
        session = info.session
        session.link = info.link
        session.paused = session.closing = False
        session.allowed = session.sent
        info.counted = False
        info.settle_at = float("inf")
        info.paused_tells = 0
        self._say_credit(info, info.got)
        if info.got:
            self._tell_handled_now(info)  # what was told on the link before may have been lost with it

    def end(self, info: PeerInfo, now: float) -> None:
        """The link is gone: what was sent waits for its count, and what was not is handed back (`hand_back`)."""
        session = info.session
        session.link = None
        self._subscribers.stop_draining(session)
        self.draining.pop(info.identifier, None)
        info.acknowledge_at = float("inf")
        info.settle_at = now + LOSS_SECONDS_MAX if info.ledger else float("inf")

    def check_count(self, session: ClientSession, message: Credit) -> None:
        """Raises ProtocolViolation when a first CREDIT counts what was never sent.

        When nothing was sent we may have forgotten what was, and take the other side's word.
        """
        if message.received > session.sent and (session.sent or message.received > CREDIT_MAX // 2):
            text = f"{message.received} is more than the {session.sent} that were ever sent"
            raise ProtocolViolation(f"CREDIT: received {text}")

    def count(self, info: PeerInfo, message: Credit, now: float) -> None:
        """The first CREDIT on a link, checked: so many events arrived, and so many may be sent."""
        self._settle(info, message.received, now)
        info.counted = True
        info.session.allowed = message.allowed

    def hand_back(self, info: PeerInfo, now: float) -> None:
        """Forwards that were never sent can still go elsewhere."""
        forwards = [self._pop(info) for _ in range(len(info.forwards))]
        if forwards:
            self._hooks.returned(info, forwards, now)

    def give_up(self, info: PeerInfo, now: float) -> None:
        """There will be no count: all that was under way is taken for lost."""
        info.settle_at = float("inf")
        if not info.reported:
            info.reported = True
            self._report(info, list(info.ledger), now)
        self.hand_back(info, now)

    def forget(self, info: PeerInfo, now: float) -> None:
        """The other side is forgotten, and counts begin anew if it comes back."""
        self.give_up(info, now)
        self._settle(info, info.acknowledged, now)
        session = info.session
        session.sent = session.received = session.allowed = 0

    def _settle(self, info: PeerInfo, arrived: int, now: float) -> None:
        """So many of our events came in there; what else was sent is lost. Counts go on from there."""
        session = info.session
        lost: list[Entry] = []
        while info.ledger and info.ledger[-1].position > arrived:
            lost.append(info.ledger.pop())
        # Deliveries are accounted for as those of clients are: what is missing and was no FORWARD, for the session.
        session.sent -= min(session.sent, sum(entry.events for entry in lost) + max(0, info.acknowledged - arrived))
        self._subscribers.lost_in_flight(session, arrived)
        info.acknowledged = min(info.acknowledged, arrived)
        info.settle_at = float("inf")
        if info.reported:
            info.ledger.clear()
            info.reported = False
        else:
            self._report(info, lost[::-1], now)

    def _report(self, info: PeerInfo, lost: list[Entry], now: float) -> None:
        counts: dict[str, int] = {}
        for entry in lost:
            counts[entry.stream] = counts.get(entry.stream, 0) + entry.events
        for stream, count in counts.items():
            self.lost += count
            self._hooks.lost(info, stream, count, now)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _may_forward(self, info: PeerInfo) -> bool:
        session = info.session
        if info.link is None or session.paused or session.sent >= session.allowed:
            return False
        return len(info.ledger) < LEDGER_LENGTH_MAX

    def _send_forward(self, info: PeerInfo, message: Forward) -> None:
        assert info.link is not None
        session, count = info.session, message.batch.count
        session.sent += count
        self.sent += count
        info.ledger.append(Entry(session.sent, stream_of(message.batch.topics), count))
        self._effects.append(Send(info.link, message))

    def _pump_forwards(self, info: PeerInfo) -> None:
        budget = self._config.limits.drain_step_bytes
        while info.forwards and budget > 0 and self._may_forward(info):
            message = self._pop(info)
            budget -= len(message.batch.records)
            self._send_forward(info, message)
        if info.forwards and self._may_forward(info):
            self.draining[info.identifier] = info
            self._timers.at("draining", float("-inf"))
        else:
            self.draining.pop(info.identifier, None)

    def _relieve(self, info: PeerInfo, now: float) -> None:
        """Over a bound the oldest goes, and is counted."""
        config = self._config
        counts: dict[str, int] = {}
        while info.forwards and (
            info.forwards_bytes > config.outbox_bytes or self._subscribers.outbox_bytes > config.outbox_bytes_total
        ):
            message = self._pop(info)
            stream = stream_of(message.batch.topics)
            counts[stream] = counts.get(stream, 0) + message.batch.count
        for stream, count in counts.items():
            info.dropped += count
            self.lost += count
            self._hooks.lost(info, stream, count, now)

    def _pop(self, info: PeerInfo) -> Forward:
        message = info.forwards.popleft()
        size = _size(message)
        info.forwards_bytes -= size
        self.forwards_bytes -= size
        self._subscribers.outbox_bytes -= size
        return message

    def _tell_handled_now(self, info: PeerInfo) -> None:
        info.told_handled = info.handled
        info.acknowledge_at = float("inf")
        self._say_credit(info, info.handled)

    def _say_credit(self, info: PeerInfo, received: int) -> None:
        assert info.link is not None
        info.told_got = info.got
        self._effects.append(Send(info.link, Credit(min(info.got + _WINDOW, CREDIT_MAX), received)))

    def validate(self, infos: list[PeerInfo]) -> None:
        """Asserts that ledgers ascend, that outboxes are counted right, and that nothing waits that may be sent."""
        for info in infos:
            assert info.forwards_bytes == sum(map(_size, info.forwards)) <= self._config.outbox_bytes
            assert info.handled <= info.got
            positions = [entry.position for entry in info.ledger]
            assert positions == sorted(set(positions))
            assert not positions or positions[-1] <= info.session.sent
            assert info.session.link == info.link
            may_send = info.link is not None and self._may_forward(info)
            assert not (info.forwards and may_send) or info.identifier in self.draining
        assert self.forwards_bytes == sum(info.forwards_bytes for info in infos)


def _size(message: Forward) -> int:
    batch = message.batch
    columns = len(batch.records) + len(batch.topics) + len(batch.lengths) + len(message.offsets)
    return columns + sum(map(len, batch.columns.values())) + FORWARD_OVERHEAD_BYTES
