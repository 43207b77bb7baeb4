"""What a client shows of itself: where it is connected, what came of its publishes, what it has missed."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from ..addresses import Addresses
from ..errors import HeadgateError
from .conversation import Conversation

__all__ = ["Overview"]


class _Link(Protocol):
    """What is asked of the link of a client, whatever its world."""

    addresses: Addresses
    reconnects: int

    @property
    def connected(self) -> bool: ...


class Overview:
    """The part of a client that is the same in every world and does nothing."""

    def __init__(self, conversation: Conversation, link: _Link) -> None:
        self.__conversation = conversation
        self.__link = link

    @property
    def address(self) -> str:
        """The address of the broker that it has, or had last, as given."""
        return self.__link.addresses.last or self.__link.addresses.text

    @property
    def addresses(self) -> tuple[str, ...]:
        """Every broker that it may turn to."""
        return self.__link.addresses.every

    @property
    def broker(self) -> str:
        """The broker's name, as it introduced itself."""
        return self.__conversation.broker

    @property
    def connected(self) -> bool:
        """Whether there is a connection, as far as is known; without one everything waits for the next."""
        return self.__link.connected

    @property
    def reconnects(self) -> int:
        """How often the connection was lost and found again."""
        return self.__link.reconnects

    @property
    def failures(self) -> deque[HeadgateError]:
        """The last errors of publishes that nobody was waiting for."""
        return self.__conversation.publications.failures

    @property
    def failure_count(self) -> int:
        """How many events those and all earlier ones concern."""
        return self.__conversation.publications.failure_count

    @property
    def hindrance(self) -> HeadgateError | None:
        """Why what is to be stored has to be tried again, while it is; None when nothing has."""
        reasons = (producer.hindrance for producer in self.__conversation.publications.producers)
        return next((reason for reason in reasons if reason is not None), None)

    @property
    def lost(self) -> int:
        """Deliveries that were dropped on the way to this client, all subscriptions together."""
        return self.__conversation.deliveries.lost

    @property
    def malformed(self) -> int:
        """Events that were skipped because their publisher did not encode them properly."""
        return self.__conversation.deliveries.malformed

    def interest(self, stream: str) -> list[str] | None:
        """The attributes of a stream that brokers filter on, as they said last; None when they did not."""
        return self.__conversation.publications.interest.get(stream)
