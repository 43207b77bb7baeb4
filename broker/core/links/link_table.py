"""Which links there are to other brokers, and how one comes about: one link to each, nothing lost on the way to it.

A link is made in steps, and carries nothing but these before the third:

    dialler   PEER      I am so and so
    acceptor  PEER      and I am so and so
    dialler   CREDIT    this is the link that we use from now on
    acceptor  CREDIT    so be it

The dialler's CREDIT decides. Two brokers may dial each other at the same time, or one of them twice under different
addresses; the dialler looks, when the answer comes, whether there is something to that broker already:

    a link in use                         the new one is closed
    one that it accepted and that is      the dial of the broker with the higher identifier counts: the other one
    not decided yet                       closes its own, and waits
    neither                               the new one is used

and the acceptor does not answer while it has decided for a link itself and cannot know whether the other side has
heard of it. So both come to the same link, and nothing was said on the other. A link that was decided for replaces an
older one of the same life: the other side has found out that it is dead.

A broker is known by its name: its identifier is the hash of it. A newer *life* of a broker takes the place of an older
one that is gone; a second broker of the same name, one of another cluster and one that is set up in another way are
turned away (`greeting.py`). What others say when they turn this one away is kept for a while in `refusals`.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.protocol.errors import ErrorCode, ProtocolViolation
from headgate.protocol.messages import PEER_VERSION, Credit, Error, Gap, Goodbye, Message, Peer, Scope

from ..config import NodeConfig
from ..delivery import ClientSession, Subscribers
from ..effects import Close, Effect, Note, Send
from ..keyspace import hash_identifier
from ..timers import Timers
from .dialer import Dials, Tellable
from .flow import PeerTraffic
from .greeting import PeerHooks, PeerInfo, Refusal, is_same_broker, objection, objection_to_founder, objection_to_name
from .limits import COMPLAINTS_MAX, FORGET_SECONDS, HALF_OPEN_SECONDS_MAX, PAUSED_TELLS_MAX

__all__ = ["Opening", "PeerLinks"]

_REFUSALS = (ErrorCode.DUPLICATE, ErrorCode.MISMATCH, ErrorCode.OTHER_CLUSTER, ErrorCode.VERSION)
"""What is said to a broker that may not be linked, and will not be until its settings change."""


@dataclass(slots=True)
class Opening:
    """A connection that is no link yet. `greeting` is the other side's: then we answered, and wait for its decision."""

    link: int
    address: str  # what was dialled, "" when it was accepted
    since: float
    greeting: Peer | None = None
    names: tuple[str, ...] | None = None
    """What the other side's certificate proves, where brokers show one."""

    @property
    def deadline(self) -> float:
        """The handshake has one of its own, in the session; what comes after it has this one."""
        return float("inf") if self.greeting is None else self.since + HALF_OPEN_SECONDS_MAX


class PeerLinks:
    """Knows the links there are, and makes and ends them."""

    def __init__(
        self,
        config: NodeConfig,
        effects: list[Effect],
        subscribers: Subscribers,
        hooks: PeerHooks,
        traffic: PeerTraffic,
        dials: Dials,
        timers: Timers,
    ) -> None:
        self._timers = timers
        fingerprint = dict(config.fingerprint)
        self.mine = Peer(PEER_VERSION, config.name, config.incarnation, "", "", config.cluster, False, fingerprint)
        self.refusals: dict[str, Refusal] = {}  # by address
        self._seeds = config.seeds
        self._idle_seconds = config.limits.idle_link_seconds
        self.by_identifier: dict[int, PeerInfo] = {}
        self.by_link: dict[int, PeerInfo] = {}
        self.openings: dict[int, Opening] = {}
        self.sessions: dict[tuple[int, int], ClientSession] = {}
        self.held: dict[tuple[int, int], None] = {}  # sessions that another part asked for
        self._me = hash_identifier(config.name)
        self._effects = effects
        self._subscribers = subscribers
        self._hooks = hooks
        self._traffic = traffic
        self._dials = dials
        self._identifier_at: dict[str, int] = {}

    # --- who is there ------------------------------------------------------------------------------------------------

    def linked_at(self, address: str) -> PeerInfo | None:
        """The broker at this address, when there is a link to it."""
        identifier = self._identifier_at.get(address)
        info = None if identifier is None else self.by_identifier.get(identifier)
        return info if info is not None and info.link is not None else None

    def session_of(self, identifier: int, life: int) -> ClientSession:
        """The session of a broker's life."""
        session = self.sessions.get((identifier, life))
        if session is None:
            key = b"peer" + identifier.to_bytes(8, "big") + life.to_bytes(8, "big")
            session = ClientSession(key, f"{identifier:016x}/{life}", None, 0, 0)
            self.sessions[identifier, life] = session
        return session

    def say(self, info: PeerInfo, message: Tellable, now: float) -> None:
        """On its link, which there is."""
        link = info.link
        assert link is not None
        info.active = now
        self._effects.append(Send(link, message))
        if info.session.paused:
            info.paused_tells += 1
            if info.paused_tells > PAUSED_TELLS_MAX:
                self._effects.append(Close(link))
                self.gone(info, "it takes nothing of what it is told", now)

    # --- how a link comes about --------------------------------------------------------------------------------------

    def connected(self, link: int, address: str, now: float, names: tuple[str, ...] | None = None) -> None:
        """A connection is there: dialled to that address, or accepted; with names that its certificate proves."""
        self.openings[link] = Opening(link, address, now, names=names)
        if address:
            self._effects.append(Send(link, self.mine))

    def introduced(self, opening: Opening, message: Message, now: float) -> None:
        """A word on what is no link yet. Raises ProtocolViolation."""
        if isinstance(message, Error | Goodbye):
            self._turned_away(opening, message, now)
            self.ended(opening.link, message.text, now)
        elif opening.greeting is None and isinstance(message, Peer):
            if opening.address:
                self._answered(opening, message, now)
            else:
                self._greeted(opening, message)
        elif opening.greeting is not None and isinstance(message, Credit):
            self._decided(opening, opening.greeting, message, now)
        else:
            raise ProtocolViolation("the first word after the greetings is the dialler's CREDIT")

    def refuse(self, link: int, code: int, text: str) -> None:
        """It will be no link."""
        self.openings.pop(link, None)
        self._effects += (Send(link, Error(code, Scope.CONNECTION, 0, text)), Close(link))

    def _turned_away(self, opening: Opening, message: Error | Goodbye, now: float) -> None:
        """The other side wants no link: dialled by us, or it dialled and does not like what it found here."""
        address = opening.address
        if message.code in _REFUSALS:
            if opening.greeting is not None:
                address = opening.greeting.address
            self.refusals.pop(address, None)
            self.refusals[address] = Refusal(message.code, message.text, now)
            if len(self.refusals) > COMPLAINTS_MAX:
                del self.refusals[next(iter(self.refusals))]
        if address and message.code != ErrorCode.REPLACED:
            self._complain(address, message.text)

    def _greeted(self, opening: Opening, peer: Peer) -> None:
        """We accepted, and the other side says who it is."""
        known = self.by_identifier.get(hash_identifier(peer.name))
        if not is_same_broker(self.mine, peer):
            error = objection_to_name(peer, opening.names) or objection(self.mine, peer, known)
            if error is not None:
                self._complain(peer.address, error.text)
                self.refuse(opening.link, error.code, error.text)
                return
            linked = known is not None and known.link is not None and known.life == peer.life
            if known is not None and linked and known.dialled and not known.counted:
                text = f"{self.mine.name} has just decided for another link to {peer.name}"
                self.refuse(opening.link, ErrorCode.REPLACED, text)
                return
        opening.greeting = peer
        self._effects.append(Send(opening.link, self.mine))
        self._timers.at(("opening", opening.link), opening.deadline)

    def _answered(self, opening: Opening, peer: Peer, now: float) -> None:
        """We dialled, and hear who is there."""
        known = self.by_identifier.get(hash_identifier(peer.name))
        if is_same_broker(self.mine, peer):
            self._dials.is_own(opening.address)
            self.refuse(opening.link, ErrorCode.REPLACED, "we are one and the same")
            return
        error = objection_to_name(peer, opening.names) or objection(self.mine, peer, known)
        if error is None and opening.address not in self._seeds:
            error = objection_to_founder(self.mine, peer, opening.address)
        if error is not None:
            self._complain(opening.address, error.text)
            self._not_used(opening, error.code, error.text, now)
            return
        self._identifier_at[opening.address] = hash_identifier(peer.name)
        if known is not None and known.link is not None and known.life == peer.life:
            known.aliases[opening.address] = None
            self._not_used(opening, ErrorCode.REPLACED, "there is a link already", now)
            self._flush(known, now)
        elif hash_identifier(peer.name) > self._me and any(self._undecided(peer)):
            self._not_used(opening, ErrorCode.REPLACED, "the link that you dialled is the one to use", now)
        else:
            self._open(opening, peer, now)

    def _undecided(self, peer: Peer) -> list[int]:
        """Links that the same broker dialled and has not decided for."""
        openings = self.openings.values()
        return [one.link for one in openings if one.greeting is not None and one.greeting.name == peer.name]

    def _not_used(self, opening: Opening, code: int, text: str, now: float) -> None:
        self.refuse(opening.link, code, text)
        self._dials.over(opening.address, now)

    def _decided(self, opening: Opening, peer: Peer, credit: Credit, now: float) -> None:
        """We accepted, and the other side has decided for this link. Raises ProtocolViolation."""
        error = objection(self.mine, peer, self.by_identifier.get(hash_identifier(peer.name)))
        if error is not None:  # things have changed since it was greeted
            self.refuse(opening.link, error.code, error.text)
            return
        self._traffic.check_count(self.session_of(hash_identifier(peer.name), peer.life), credit)
        self._open(opening, peer, now, credit)

    def _open(self, opening: Opening, peer: Peer, now: float, credit: Credit | None = None) -> None:
        """It is a link now, and every other one to that broker is over."""
        del self.openings[opening.link]
        for link in self._undecided(peer):
            self.refuse(link, ErrorCode.REPLACED, "another link is the one to use")
        info = self._info_of(peer, now)
        info.link = opening.link
        info.dialled = bool(opening.address)
        info.active = now
        self.by_link[opening.link] = info
        for address in (peer.address, opening.address):
            if address:
                self.refusals.pop(address, None)
                info.aliases[address] = None
                self._identifier_at[address] = info.identifier
        self._dials.opened(opening.address)
        self._traffic.begin(info)
        if credit is not None:
            self._traffic.count(info, credit, now)
        self._effects.append(Note("broker linked", {"broker": info.name, "life": info.life, "address": info.address}))
        self._hooks.up(info, now)
        self._flush(info, now)
        self._traffic.pump(info)
        self.set_timer(info)

    def _info_of(self, peer: Peer, now: float) -> PeerInfo:
        """The record of this life; a former life, or a former link, ends here."""
        identifier = hash_identifier(peer.name)
        info = self.by_identifier.get(identifier)
        if info is not None and info.link is not None:
            link, text = info.link, f"{peer.name} goes on over another link"
            self._effects += (Send(link, Error(ErrorCode.REPLACED, Scope.CONNECTION, 0, text)), Close(link))
            self.gone(info, text, now)
        if info is not None and info.life != peer.life:
            if not info.left:  # what it had matched for us and not sent yet died with it: unknown how much
                self._hooks.gap(info, Gap(0, 0, f"{info.name} was started again"), now)
            self.drop(info, now)
            info = None
        if info is None:
            session = self.session_of(identifier, peer.life)
            session.name = peer.name
            info = PeerInfo(peer.name, identifier, peer.life, peer.address, peer.client_address, session)
            self.by_identifier[identifier] = info
        return info

    def _flush(self, info: PeerInfo, now: float) -> None:
        """What waited for a link to any of its addresses goes out."""
        for address in list(info.aliases):
            for message in self._dials.take(address, now):
                if info.link is not None:
                    self.say(info, message, now)

    # --- how it ends -------------------------------------------------------------------------------------------------

    def ended(self, link: int, reason: str, now: float) -> bool:
        """The connection is over, from whichever side; True when it was one of ours."""
        opening = self.openings.pop(link, None)
        if opening is not None:
            if opening.address:
                self._dials.over(opening.address, now)
            return True
        info = self.by_link.get(link)
        if info is not None:
            self.gone(info, reason, now)
        return info is not None

    def gone(self, info: PeerInfo, reason: str, now: float) -> None:
        """There is no link to it any more."""
        assert info.link is not None
        del self.by_link[info.link]
        info.link = None
        info.active = now
        for address in [one for one, identifier in self._identifier_at.items() if identifier == info.identifier]:
            self._dials.broke(address, now)
        self._effects.append(Note("broker link ended", {"broker": info.name, "life": info.life, "reason": reason}))
        self._traffic.end(info, now)
        self._hooks.down(info, reason, now)
        self._traffic.hand_back(info, now)
        self.set_timer(info)

    def drop(self, info: PeerInfo, now: float) -> None:
        """That life of a broker is over, or forgotten."""
        del self.by_identifier[info.identifier]
        self._timers.at(("broker", info.identifier), float("inf"))
        for address in info.aliases:
            if self._identifier_at.get(address) == info.identifier:
                del self._identifier_at[address]
        self._traffic.forget(info, now)
        self._subscribers.discard(info.session, "gone")
        if (info.identifier, info.life) not in self.held:
            del self.sessions[info.identifier, info.life]

    def deadline_of(self, info: PeerInfo) -> float:
        """When there is something to do about this broker; words on its link move that to later."""
        if info.link is None:
            return min(info.settle_at, info.active + FORGET_SECONDS)
        # Who dialled ends it: the other side cannot know whether it is wanted there.
        wanted = not info.dialled or not self._dials.wanted.keys().isdisjoint(info.aliases)
        return min(info.acknowledge_at, float("inf") if wanted else info.active + self._idle_seconds)

    def set_timer(self, info: PeerInfo) -> None:
        """Something may be due sooner than it was; called again when it is due."""
        self._timers.at(("broker", info.identifier), self.deadline_of(info))

    def _complain(self, address: str, text: str) -> None:
        """Tell the operator, once for each address and reason."""
        if self._dials.is_news(address, text):
            self._effects.append(Note("broker refused", {"address": address, "reason": text}, alarming=True))

    def validate(self) -> None:
        """Asserts that the tables by link, by identifier and of sessions agree."""
        for link, info in self.by_link.items():
            assert info.link == link and self.by_identifier[info.identifier] is info
            assert link not in self.openings
        for identifier, info in self.by_identifier.items():
            assert identifier == info.identifier == hash_identifier(info.name) != self._me
            assert info.link is None or self.by_link[info.link] is info
            assert self.sessions[identifier, info.life] is info.session
