"""The interface of a placement: a way to put subscriptions where their events pass. There are two.

    anchored    a subscription rests at one anchor, in the index of the stream there         `anchored.py`
    counting    it is on lists, one for each value of each attribute that it constrains      `counting_home.py`

A stream's settings name one (`placement`); a subscription stays where the placement of its day put it. The registry
sees a subscription through its life, whichever placement it has: it asks `plan` where it is to rest, puts items there
(`Resting.pieces`), and says `enter` and `leave`. What rests at this broker, for whichever home, comes and goes by `add`
and `remove`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias

from headgate.matching import Pattern, Tree
from headgate.protocol.data import Batch

from ..config import NodeConfig
from ..delivery import Subscription
from ..keyspace import Dimension, Segment
from ..kv import Item
from ..limits import DEFAULT_LIMITS
from .edges import Laid

__all__ = ["Lists", "Mine", "Placement", "Resting", "Runs", "Wish"]

Runs: TypeAlias = Iterable[tuple[Collection[int], int]]
"""Rows of a batch in order: whose they are (numbers of our clients' subscriptions), and of how many rows."""


class Wish(NamedTuple):
    """What there is to know when it is planned where a subscription rests."""

    pattern: Pattern
    condition: Tree | None
    schema: Mapping[str, Any] | None
    used: Collection[Dimension] = ()
    """Dimensions that this broker's clients use of the stream."""
    ordered: bool = False
    dimensions_max: int = DEFAULT_LIMITS.dimensions


class Resting(Protocol):
    """Where a subscription rests: its keys on the dimensions of its placement."""

    @property
    def placement(self) -> str:
        """The name of the placement."""

    @property
    def stream(self) -> str:
        """Its stream."""

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """Those that it uses: every broker has to know of them."""

    @property
    def segments(self) -> tuple[Segment, ...]:
        """All of its keys."""

    @property
    def laid(self) -> Laid | None:
        """What it leaves on the cube for events to follow; None when it is found without."""

    def pieces(self, subscription: Subscription, exact: bool, text: str) -> Iterable[tuple[Segment, list[Any]]]:
        """What is put at which keys; `text` is the condition as the client wrote it."""

    def because(self) -> str:
        """Why it rests there, for people."""


@dataclass(slots=True, eq=False)
class Mine:
    """A subscription of one of our clients, and where it rests."""

    subscription: Subscription
    placement: Placement
    items: tuple[Item, ...]
    dimensions: tuple[Dimension, ...]
    attributes: tuple[str, ...]
    meaning: tuple[Pattern, Tree | None] | None  # until it is in force, so that it need not be parsed twice
    long_bytes: int = 0
    waits: int = 0
    """For so many of: its items to be placed, its edges, and all brokers to know what is in use."""
    laid: Laid | None = None
    lists: Lists | None = None
    """Where it stands together with other versions of the same subscription."""


@dataclass(slots=True, eq=False)
class Lists:
    """Versions of one subscription that stand under one number, so that what several of them want is put once."""

    number: int
    parts: int
    """How many items were ever put under it: none has the name of a former one."""
    versions: list[Mine]

    def standing(self, low: int, high: int, value: list[Any]) -> Item | None:
        """The item that says this already."""
        return next(
            (
                item
                for mine in self.versions
                for item in mine.items
                if (item.low, item.high) == (low, high) and item.value == value
            ),
            None,
        )


class Placement(ABC):
    """One way to place subscriptions, and what rests at this broker because of it."""

    name: ClassVar[str]
    """As a stream's settings have it."""
    kind: ClassVar[str]
    """First part of the names of its items."""
    keeps: ClassVar[bool] = False
    """An item says nothing of the condition, so that one of a former version may serve the next one."""

    def __init__(self, config: NodeConfig) -> None:
        self._me, self._life = config.identifier, config.incarnation

    @abstractmethod
    def plan(self, wish: Wish) -> Resting:
        """Where a subscription is going to rest; with another placement when it cannot rest with this one."""

    @abstractmethod
    def enter(self, number: int, identity: int, pattern: Pattern, condition: Tree | None) -> None:
        """One of our clients' subscriptions is about to be put where it rests, under this number."""

    @abstractmethod
    def leave(self, number: int, identity: int) -> None:
        """One of our clients' subscriptions is no more: its items are withdrawn."""

    @abstractmethod
    def add(self, item: Item) -> None:
        """An item came to rest here. Raises one of several errors when it cannot be understood."""

    @abstractmethod
    def remove(self, item: Item) -> None:
        """It rests here no more."""

    @abstractmethod
    def confirmed(self, batch: Batch, runs: Runs) -> Runs:
        """Of what another broker found for our clients, what they want. Raises ProtocolViolation when read."""

    @abstractmethod
    def resting(self, stream: str) -> int:
        """How many subscriptions of a stream rest here."""

    @abstractmethod
    def subid(self, number: int | None, attributes: int) -> dict[str, Any] | None:
        """The three parts of the subID that a subscription of ours has, or would have (number None); None without."""

    @abstractmethod
    def validate(self) -> None:
        """Asserts that what rests here is sound."""
