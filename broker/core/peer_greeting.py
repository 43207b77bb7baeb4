"""May these two be linked? One broker's greeting beside another's, and what speaks against it; no state.

The text of an objection is read by an operator on either side, so it names both values and what to do.
"""

from __future__ import annotations

from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Error, Peer, Scope

from .identifiers import hash_identifier
from .peer_info import PeerInfo

__all__ = ["is_same_broker", "objection", "objection_to_founder"]


def is_same_broker(mine: Peer, theirs: Peer) -> bool:
    """Whether we have dialled ourselves."""
    return (mine.name, mine.life, mine.address, mine.client_address) == (
        theirs.name,
        theirs.life,
        theirs.address,
        theirs.client_address,
    )


def objection(mine: Peer, theirs: Peer, known: PeerInfo | None) -> Error | None:
    """Why not; `known` is what we remember under their identifier."""
    if not theirs.name or not theirs.address:
        return _refusal(ErrorCode.PROTOCOL, "a broker says its name and the address where others reach it")
    if theirs.cluster != mine.cluster:
        text = (
            f"{mine.name} is of the cluster {mine.cluster!r}, and {theirs.name} at {theirs.address} of "
            f"{theirs.cluster!r}: clusters of different names never link; if these are to be one, start both with the "
            "same --cluster, and else take the address of the other one out of --join"
        )
        return _refusal(ErrorCode.OTHER_CLUSTER, text)
    if theirs.name == mine.name:
        return _refusal(ErrorCode.DUPLICATE, _two_brokers(theirs.name, mine.address, theirs.address))
    difference = _difference(mine, theirs)
    if difference:
        return _refusal(ErrorCode.MISMATCH, difference)
    if hash_identifier(theirs.name) == hash_identifier(mine.name):
        text = f"{theirs.name} and {mine.name} have the same place on the ring: give one of them another --name"
        return _refusal(ErrorCode.DUPLICATE, text)
    return None if known is None else _against_known(theirs, known)


def objection_to_founder(mine: Peer, theirs: Peer, dialled: str) -> Error | None:
    """Why not link to who answered at an address that this broker only remembers: it was told to join nobody.

    A founder is joined by those who were told its address. Else a broker that begins a cluster of its own, where
    another one once was, would find itself in the other one's.
    """
    if not theirs.founder:
        return None
    text = (
        f"{theirs.name} was told to join nobody, and {mine.name} of the cluster {mine.cluster!r} only remembers its "
        f"address {dialled}: start it with --join {mine.address} if it is to be of that cluster, and else give it "
        "another --cluster"
    )
    return _refusal(ErrorCode.OTHER_CLUSTER, text)


def _against_known(theirs: Peer, known: PeerInfo) -> Error | None:
    if known.name != theirs.name:
        text = f"{theirs.name} and {known.name} have the same place on the ring: give one of them another --name"
        return _refusal(ErrorCode.DUPLICATE, text)
    if theirs.life < known.life:
        text = (
            f"{theirs.name} is known here in life {known.life}, and this is life {theirs.life}: an older process, "
            "or one that lost its data, which is taken back a minute after the other one was last seen"
        )
        return _refusal(ErrorCode.DUPLICATE, text)
    if theirs.life == known.life and theirs.address != known.address:
        return _refusal(ErrorCode.DUPLICATE, _two_brokers(theirs.name, known.address, theirs.address))
    if theirs.life > known.life and known.link is not None:
        text = _two_brokers(theirs.name, known.address, theirs.address)
        text += f"; here life {known.life} is linked, and life {theirs.life} may take its place when it no longer is"
        return _refusal(ErrorCode.DUPLICATE, text)
    return None


def _two_brokers(name: str, one: str, other: str) -> str:
    return f"two brokers are named {name}, at {one} and at {other}: give one of them another --name"


def _difference(mine: Peer, theirs: Peer) -> str:
    """The first setting in which two brokers differ, in words; empty when they agree."""
    for name in sorted({*mine.fingerprint, *theirs.fingerprint}):
        ours, others = mine.fingerprint.get(name), theirs.fingerprint.get(name)
        if type(ours) is not type(others) or ours != others:
            return (
                f"all brokers of a cluster have the same {name}, and {mine.name} has {ours!r} where "
                f"{theirs.name} has {others!r}: change one of them and restart it"
            )
    return ""


def _refusal(code: ErrorCode, text: str) -> Error:
    return Error(code, Scope.CONNECTION, 0, text)
