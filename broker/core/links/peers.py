"""Peers: other brokers as the parts of the Node see them. Control goes at once, events under credit; no meaning here.

    tell          a LETTER, CONTROL or COPY for an address: on its link at once, before events; else it is dialled
    keep          the addresses that links are wanted to
    send_events   a FORWARD or DELIVER for a broker, under its credit and within the bounds of its outbox
    acknowledge   what came from it is done with
    handle, wake  inputs of the host, and time

What other brokers say goes to the hooks. How a link comes about is in `link_table.py`, which brokers to dial and
when in `dialer.py`, the account of events in `flow.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from random import Random
from typing import Any

from headgate.protocol.errors import ErrorCode, ProtocolViolation
from headgate.protocol.messages import (
    Control,
    Copy,
    Credit,
    Deliver,
    Error,
    Fetched,
    Forward,
    Gap,
    Goodbye,
    Letter,
    Scope,
)

from ..config import NodeConfig
from ..delivery import ClientSession, Subscribers
from ..effects import Close, Effect, Note, Send
from ..inputs import DialFailed, Input, LinkDown, LinkPaused, LinkResumed, PeerUp, Reachable, Received
from ..timers import Timers
from .dialer import Dials, Tellable
from .flow import PeerTraffic
from .greeting import PeerHooks, PeerInfo, Refusal
from .limits import FORGET_SECONDS, LOSS_SECONDS_MAX, REFUSAL_SECONDS
from .link_table import PeerLinks

__all__ = ["PeerHooks", "PeerInfo", "Peers"]


class Peers:
    """Carries messages and events to other brokers, and from them to the parts they are for."""

    def __init__(
        self,
        config: NodeConfig,
        effects: list[Effect],
        subscribers: Subscribers,
        hooks: PeerHooks,
        random: Random,
        timers: Timers | None = None,
    ) -> None:
        self.timers = timers = Timers() if timers is None else timers
        self.traffic = PeerTraffic(config, effects, subscribers, hooks, timers)
        self.dials = Dials(effects, random, timers, lambda address: self._links.linked_at(address) is not None)
        self._links = PeerLinks(config, effects, subscribers, hooks, self.traffic, self.dials, timers)
        self.by_identifier = self._links.by_identifier
        self.by_link = self._links.by_link
        self.sessions = self._links.sessions
        self._effects = effects
        self._subscribers = subscribers
        self._hooks = hooks
        self._draining = False
        self._inputs: dict[type, Callable[[Any, float], bool]] = {
            Received: self._received,
            PeerUp: self._peer_up,
            LinkDown: lambda happened, now: self._links.ended(happened.link, happened.reason, now),
            LinkPaused: self._link_paused,
            LinkResumed: self._link_resumed,
            DialFailed: self._dial_failed,
            Reachable: lambda happened, now: self.begin(happened.address, happened.client_address, now),
        }
        self._messages: dict[type, Callable[[PeerInfo, Any, float], None]] = {
            Letter: hooks.letter,
            Control: hooks.control,
            Copy: hooks.copy,
            Fetched: hooks.fetched,
            Forward: self._forward,
            Deliver: self._deliver,
            Gap: hooks.gap,
            Credit: self.traffic.credited,
            Error: self._error,
            Goodbye: self._goodbye,
        }

    # --- what the parts beside it ask --------------------------------------------------------------------------------

    def begin(self, address: str, client_address: str, now: float) -> bool:
        """Others can reach us there: from now on brokers are dialled."""
        self._links.mine = replace(self._links.mine, address=address, client_address=client_address)
        self.dials.is_own(address)
        if not self._draining:
            self.dials.begin(now)
        return False

    def show_founder(self, founder: bool) -> None:
        """Whether this broker was told to join no other and knows of none: others are told so from now on."""
        self._links.mine = replace(self._links.mine, founder=founder)

    def refusals(self, now: float) -> dict[str, Refusal]:
        """By address, who says now that this broker may not be linked to it."""
        return {address: one for address, one in self._links.refusals.items() if now < one.at + REFUSAL_SECONDS}

    def keep(self, addresses: Iterable[str], now: float) -> None:
        """Links to these are wanted, from now on and to no others. Those that are not wanted end when they idle."""
        if self.dials.keep(addresses, now):
            for info in self.by_identifier.values():
                self._links.set_timer(info)

    def tell(self, address: str, message: Tellable, now: float) -> None:
        """Say it there at once, before events that wait, or as soon as there is a link; it may be lost.

        On one link nothing is lost and everything comes in the order in which it was said.
        """
        info = self._links.linked_at(address)
        if info is None:
            self.dials.wait(address, message, now)
        else:
            self._links.say(info, message, now)

    def send_events(self, info: PeerInfo, message: Forward | Deliver, now: float) -> None:
        """Send events when link and credit allow it, keep them within the bounds otherwise."""
        if info.link is None:
            info.settle_at = min(info.settle_at, now + LOSS_SECONDS_MAX)
            self._links.set_timer(info)
        else:
            info.active = now
        self.traffic.send(info, message, now)

    def acknowledge(self, info: PeerInfo, count: int, now: float) -> None:
        """We are done with so many of the events that came from there, now or later than they came."""
        self.traffic.acknowledge(info, count, now)
        self._links.set_timer(info)

    def unacknowledged(self, info: PeerInfo) -> list[tuple[str, int]]:
        """(stream, events) of what was forwarded there and is not known to be done with."""
        return [(entry.stream, entry.events) for entry in info.ledger]

    def session_of(self, identifier: int, life: int) -> ClientSession:
        """The session of a broker's life, linked or not: what waits in it goes out when there is a link."""
        self._links.held[identifier, life] = None
        return self._links.session_of(identifier, life)

    def forget(self, identifier: int, life: int) -> None:
        """The part that asked for that session needs it no more."""
        self._links.held.pop((identifier, life), None)
        info = self.by_identifier.get(identifier)
        if info is None or info.life != life:
            session = self.sessions.pop((identifier, life), None)
            if session is not None:
                self._subscribers.discard(session, "gone")

    @property
    def outbox_bytes(self) -> int:
        """What waits for other brokers: a share of what all outboxes together may hold."""
        return self.traffic.forwards_bytes + sum(session.outbox_bytes for session in self.sessions.values())

    def drain(self, now: float) -> None:
        """Say what can still be said, then goodbye; dial and accept no more."""
        self._draining = True
        self.dials.end()
        for info in list(self.by_link.values()):
            self.traffic.tell_handled(info)
            self.traffic.pump(info)
        text = "this broker is shutting down"
        for link in (*self.by_link, *self._links.openings):
            self._effects += (Send(link, Goodbye(ErrorCode.SHUTTING_DOWN, text)), Close(link))
        self._links.openings.clear()
        for info in list(self.by_link.values()):
            self._links.gone(info, text, now)

    # --- inputs ------------------------------------------------------------------------------------------------------

    def handle(self, happened: Input, now: float) -> bool:
        """One thing happened. True when it was about a link to a broker, and so no other part's business."""
        take = self._inputs.get(type(happened))
        return take is not None and take(happened, now)

    def _peer_up(self, happened: PeerUp, now: float) -> bool:
        if self._draining:
            self._effects.append(Close(happened.link))
        else:
            self._links.connected(happened.link, happened.address, now, happened.names)
        return True

    def _dial_failed(self, happened: DialFailed, now: float) -> bool:
        self.dials.over(happened.address, now)
        return True

    def _received(self, happened: Received, now: float) -> bool:
        link, links = happened.link, self._links
        if link not in links.by_link and link not in links.openings:
            return False
        try:
            for message in happened.messages:
                info = links.by_link.get(link)
                if info is not None:
                    info.active = now
                    self._messages[type(message)](info, message, now)
                elif link in links.openings:
                    links.introduced(links.openings[link], message, now)
        except ProtocolViolation as violation:
            self._effects.append(Send(link, Error(violation.code, Scope.CONNECTION, 0, violation.text)))
            self._effects.append(Close(link))
            links.ended(link, violation.text, now)
        return True

    def _link_paused(self, happened: LinkPaused, now: float) -> bool:
        info = self.by_link.get(happened.link)
        if info is not None:
            info.session.paused = True
            self._subscribers.stop_draining(info.session)
            self.traffic.draining.pop(info.identifier, None)
        return info is not None or happened.link in self._links.openings

    def _link_resumed(self, happened: LinkResumed, now: float) -> bool:
        info = self.by_link.get(happened.link)
        if info is not None:
            info.session.paused = False
            info.paused_tells = 0
            self.traffic.pump(info)
        return info is not None or happened.link in self._links.openings

    # --- on a link ---------------------------------------------------------------------------------------------------

    def _forward(self, info: PeerInfo, message: Forward, now: float) -> None:
        self.traffic.came(info, message.batch.count)
        self._hooks.forward(info, message, now)

    def _deliver(self, info: PeerInfo, message: Deliver, now: float) -> None:
        self.traffic.came(info, message.portion.count)
        self._hooks.deliver(info, message, now)

    def _error(self, info: PeerInfo, message: Error, now: float) -> None:
        if message.scope == Scope.CONNECTION:
            self._goodbye(info, message, now)
        else:
            self._effects.append(Note("broker reported an error", {"broker": info.name, "text": message.text}))

    def _goodbye(self, info: PeerInfo, message: Goodbye | Error, now: float) -> None:
        assert info.link is not None
        info.left = message.code == ErrorCode.SHUTTING_DOWN
        self._effects.append(Close(info.link))
        self._links.gone(info, message.text or "goodbye", now)

    # --- time --------------------------------------------------------------------------------------------------------

    def wake(self, now: float) -> None:
        """Do what is due; at the latest at `timers.next`, which is -inf for: when other inputs had their turn."""
        self.timers.hand_out(self.timers.due(now), lambda key: self._wake_part(key, now), now)

    def _wake_part(self, key: Hashable, now: float) -> None:
        match key:
            case ("broker", int(identifier)) if identifier in self.by_identifier:
                self._wake_info(self.by_identifier[identifier], now)
            case ("dial", str(address)):
                self.dials.go_on(address, now)
            case ("opening", int(link)) if link in self._links.openings:
                self._links.refuse(link, ErrorCode.TIMEOUT, "no word for long which link is the one to use")
            case "draining":
                for info in list(self.traffic.draining.values()):
                    self.traffic.pump(info)

    def _wake_info(self, info: PeerInfo, now: float) -> None:
        if self._links.deadline_of(info) <= now:
            self._wake_due(info, now)
        if self.by_identifier.get(info.identifier) is info:
            self._links.set_timer(info)

    def _wake_due(self, info: PeerInfo, now: float) -> None:
        if info.link is None:
            if info.settle_at <= now:
                self.traffic.give_up(info, now)
            if info.active + FORGET_SECONDS <= now:
                self._links.drop(info, now)
        elif info.acknowledge_at <= now:
            self.traffic.tell_handled(info)
        elif info.ledger or info.forwards or info.session.outbox or info.got > info.handled:
            info.active = now  # it is not idle as long as something is on its way
        else:
            text = "nothing was said on this link for a while"
            self._effects += (Send(info.link, Goodbye(ErrorCode.GOODBYE, text)), Close(info.link))
            self._links.gone(info, text, now)

    def validate(self) -> None:
        """Asserts that links and the accounts of their events are sound."""
        self._links.validate()
        self.traffic.validate(list(self.by_identifier.values()))
