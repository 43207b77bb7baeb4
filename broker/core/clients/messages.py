"""What brokers say to each other for their clients: a question that came to one and is about the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from headgate.protocol.errors import ErrorCode

from ..messages import ANYTHING, CONTROLS, MAP, Field, Identifier, Name, whole

__all__ = ["Answered", "Inquire", "Named"]

_CODE: Field = whole(max(ErrorCode))


@CONTROLS.message(40)
@dataclass(slots=True)
class Inquire:
    """A client's question, numbered by the broker that asks."""

    number: Identifier
    verb: Name
    arguments: Annotated[dict[str, Any], MAP]


@CONTROLS.message(41)
@dataclass(slots=True)
class Answered:
    """The answer to it: with code 0 the value; otherwise it was refused, and the value says why."""

    number: Identifier
    code: Annotated[int, _CODE]
    value: Annotated[Any, ANYTHING]


@CONTROLS.message(42)
@dataclass(slots=True)
class Named:
    """The sender asks its clients who they are, by users and roles of this version: said on each link, and anew."""

    version: Name
