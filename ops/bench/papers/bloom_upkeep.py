"""What brokers say to each other while nobody publishes: BLOOM, Figures 4.21 and 4.22, through Nodes.

The paper's network maintains its overlay (Chord), which knows nothing of filters: below 20 bytes a second and node, in
and out, whatever l is, and somewhat more with more nodes. Here all that brokers say is counted, of a ring of Nodes at
rest with a subscription with XPATH at each (none: l = 0), in bytes of frames:

    heartbeat   PING and PONG on a link that is silent for a second, by the rule of sessions (protocol/wire/session.py)
    ring        letters of membership, and which brokers one knows of
    overlay     both: what the paper's figures count
    keys        the store of subscriptions: leases of keys, and subscriptions that are put again before they lapse
    other       all else
    structure   all that is more than without subscriptions

`mesh`: as brokers are up to 64 of them, each with a link to each. `ring`: as they are beyond that, each with links to
its successors and to some others; the same code, with another limit.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from rich.table import Table

from headgate.broker.core.cluster import Roster, Routed, StoreMessage
from headgate.broker.core.limits import DEFAULT_LIMITS, REFRESH_SECONDS, Limits
from headgate.broker.core.messages import CONTROLS
from headgate.protocol.limits import PEER_HEARTBEAT_SECONDS
from headgate.protocol.messages import Answer, Ask, Control, Letter, Message, Ping, Pong, Suback, Subscribe
from headgate.protocol.wire import encode, frame

from ..wire import console
from .figures import Figure, figures
from .node_ring import Carried, NodeRing

__all__ = ["SIZES", "Upkeep", "add_arguments", "heartbeats", "run", "upkeep"]

SIZES = {"mesh": (8, 16, 32), "ring": (8, 16, 32)}
_LENGTHS = (0, 128, 1024)
_LIMITS = {"mesh": DEFAULT_LIMITS, "ring": Limits(mesh_brokers=4, idle_link_seconds=2.0)}
_QUIET_SECONDS, _SECONDS = 12.0, REFRESH_SECONDS
_FRAME_BYTES = len(frame([b""]))
_PING_BYTES, _PONG_BYTES = (_FRAME_BYTES + len(encode(message)) for message in (Ping(1000), Pong(1000)))
_STORE = (CONTROLS.kind_of(StoreMessage), CONTROLS.kind_of(Routed))
_ROSTER = CONTROLS.kind_of(Roster)
_KINDS = ("heartbeat", "ring", "keys", "other")
_PAPER_MAX = 20
_STRUCTURE_MAX = 2
_THEIRS_SECONDS = 20.0
"""How often a node of OverSim's Chord, which the paper runs, asks its successor as it is shipped (`stabilizeDelay`)."""

_DIFFER_MAX = 1.1


@dataclass(frozen=True, slots=True)
class Upkeep:
    """Bytes a second and broker: in the mean by kind, which is the same in and out, and of all kinds where most is."""

    kinds: dict[str, float]
    in_max: float
    out_max: float
    links: float

    @property
    def overlay(self) -> float:
        """What keeps brokers together, whatever they are asked to do."""
        return self.kinds["heartbeat"] + self.kinds["ring"]


def heartbeats(times: Iterable[tuple[float, int]], ends: tuple[int, int], start: float, stop: float) -> Counter[int]:
    """How often each end of a link pings, where messages come to these ends at these times, ascending."""
    heard = dict.fromkeys(ends, start)
    pings: Counter[int] = Counter()
    for time, receiver in [*times, (stop, ends[0])]:
        while (first := min(heard.values()) + PEER_HEARTBEAT_SECONDS) < time:
            silent = min(heard, key=heard.__getitem__)
            pings[silent] += 1
            heard = dict.fromkeys(ends, first)  # the other end hears PING, and this one PONG
        heard[receiver] = time
    return pings


def upkeep(count: int, form: str, length: int, seed: int, seconds: float = _SECONDS) -> Upkeep:
    """That of a ring at rest, with subscriptions to filters of this length; none with 0."""
    ring = NodeRing(count, seed, _LIMITS[form])
    clients = [ring.connect(place) for place in range(count)]
    if length:
        clients[0].say(Ask(1, "schema.put", {"stream": "library", "schema": {"structure.l": length}}))
        ring.run(1.0)
        assert any(isinstance(message, Answer) for message in clients[0].take())
        for place, client in enumerate(clients):
            client.say(Subscribe(1, 1, "library", f"XPATH '/bib/book[n{place}]'", {}))
    ring.run(_QUIET_SECONDS)
    assert not length or all(any(isinstance(one, Suback) for one in client.take()) for client in clients)
    ring.carried = []
    start, links = ring.now, ring.links
    ring.run(seconds)
    carried, ring.carried = ring.carried, None
    links |= ring.links
    return _sum(carried, links, count, start, ring.now)


def _sum(carried: list[Carried], links: dict[int, tuple[str, int]], count: int, start: float, stop: float) -> Upkeep:
    kinds: Counter[str] = Counter()
    came: Counter[str] = Counter()
    went: Counter[str] = Counter()

    def add(sender: int, receiver: int, kind: str, size: int) -> None:
        kinds[kind] += size
        for link, total in ((sender, went), (receiver, came)):
            if link in links:
                total[links[link][0]] += size

    heard: dict[int, list[tuple[float, int]]] = {}
    for one in carried:
        add(one.sender, one.receiver, _kind_of(one.message), _FRAME_BYTES + one.bytes)
        heard.setdefault(min(one.sender, one.receiver), []).append((one.time, one.receiver))
    pairs = {link: other for link, (_, other) in links.items() if link < other}
    for link, other in pairs.items():
        for end, number in heartbeats(heard.get(link, []), (link, other), start, stop).items():
            far = other if end == link else link
            add(end, far, "heartbeat", number * _PING_BYTES)
            add(far, end, "heartbeat", number * _PONG_BYTES)
    span = stop - start
    by_kind = {kind: kinds[kind] / span / count for kind in _KINDS}
    return Upkeep(by_kind, max(came.values()) / span, max(went.values()) / span, 2 * len(pairs) / count)


def _kind_of(message: Message) -> str:
    if isinstance(message, Letter):
        return "ring"
    if isinstance(message, Control):
        return "keys" if message.kind in _STORE else "ring" if message.kind == _ROSTER else "other"
    return "other"


def _judged(found: dict[tuple[str, int, int], Upkeep], sizes: dict[str, tuple[int, ...]]) -> list[Figure]:
    """Each of the two figures' claims; what goes out comes in, so that one number is for both."""
    spread = max(
        max(totals) / min(totals)
        for form, counts in sizes.items()
        for count in counts
        for totals in [[found[form, count, length].overlay for length in _LENGTHS]]
    )
    grown = [[found[form, count, _LENGTHS[-1]].overlay for count in counts] for form, counts in sizes.items()]
    ring = sizes["ring"]
    least, most = (found["ring", count, _LENGTHS[-1]].overlay for count in (ring[0], ring[-1]))
    own = [_structure(found, "ring", count, _LENGTHS[-1]) for count in ring]
    return [
        Figure("4.21, 22", "the same for every l", spread <= _DIFFER_MAX, f"they differ by {spread - 1:.0%} at most"),
        Figure("4.21, 22", "more with more nodes", all(each == sorted(each) for each in grown)),
        Figure(
            "4.21, 22",
            f"below {_PAPER_MAX} B/s",
            most < _PAPER_MAX,
            f"{least:.0f} to {most:.0f} in a ring: neighbours are asked each second, so that a death is known within "
            f"seconds; asked each {_THEIRS_SECONDS:g} s, as OverSim's Chord does, {least / _THEIRS_SECONDS:.0f} to "
            f"{most / _THEIRS_SECONDS:.0f}",
        ),
        Figure(
            "4.18",
            f"below {_STRUCTURE_MAX} B/s of the cube's own",
            max(own) < _STRUCTURE_MAX,
            f"`structure`, {min(own):.0f} to {max(own):.0f}: what rests is put again before its lease ends, for the "
            "owner of a key may have died with its copies",
        ),
    ]


def _structure(found: dict[tuple[str, int, int], Upkeep], form: str, count: int, length: int) -> float:
    """What is said more than without subscriptions: theirs, apart from who is alive and who owns what."""
    return sum(found[form, count, length].kinds.values()) - sum(found[form, count, 0].kinds.values())


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None of its own: the seed is that of `routing`."""
    parser.set_defaults(upkeep_sizes=SIZES, upkeep_seconds=_SECONDS)


def run(arguments: argparse.Namespace) -> int:
    """Print the table; 1 when filters make a difference to the overlay."""
    table = Table(title="BLOOM 4.21, 4.22: upkeep, bytes a second and broker", title_justify="left")
    for heading in (
        "form",
        "brokers",
        "l",
        "links",
        *_KINDS[:2],
        "overlay",
        "paper",
        *_KINDS[2:],
        "structure",
        "most in",
        "most out",
    ):
        table.add_column(heading, justify="left" if heading == "form" else "right")
    every: dict[tuple[str, int, int], Upkeep] = {}
    for form, sizes in arguments.upkeep_sizes.items():
        for count in sizes:
            found = {
                length: upkeep(count, form, length, arguments.seed, arguments.upkeep_seconds) for length in _LENGTHS
            }
            every |= {(form, count, length): one for length, one in found.items()}
            for length, one in found.items():
                table.add_row(
                    *(form, str(count), str(length), f"{one.links:.1f}"),
                    *(f"{one.kinds[kind]:.0f}" for kind in _KINDS[:2]),
                    *(f"{one.overlay:.0f}", f"< {_PAPER_MAX}"),
                    *(f"{one.kinds[kind]:.0f}" for kind in _KINDS[2:]),
                    f"{_structure(every, form, count, length):.0f}",
                    *(f"{one.in_max:.0f}", f"{one.out_max:.0f}"),
                )
        table.add_section()
    target = console()
    target.print(table)
    shown = _judged(every, arguments.upkeep_sizes)
    target.print(figures("BLOOM 4.21, 4.22: met or why not", shown))
    return 0 if shown[0].is_met else 1
