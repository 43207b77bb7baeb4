"""What brokers say to each other while nobody publishes: BLOOM, Figures 4.21 and 4.22, through Nodes.

The paper's network maintains its overlay (Chord), which knows nothing of filters: below 20 bytes a second and node, in
and out, whatever l is, and somewhat more with more nodes. Here all that brokers say is counted, of a ring of Nodes at
rest with a subscription with XPATH at each (none: l = 0), in bytes of frames:

    heartbeat   PING and PONG on a link that is silent for a second, by the rule of sessions (protocol/wire/session.py)
    ring        letters of membership, and which brokers one knows of
    overlay     both: what the paper's figures count
    keys        the store of subscriptions: leases of keys, and subscriptions that are put again before they lapse
    other       all else

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
from headgate.broker.core.limits import DEFAULT_LIMITS, Limits
from headgate.broker.core.messages import CONTROLS
from headgate.protocol.limits import PEER_HEARTBEAT_SECONDS
from headgate.protocol.messages import Answer, Ask, Control, Letter, Message, Ping, Pong, Suback, Subscribe
from headgate.protocol.wire import encode, frame

from ..wire import console
from .node_ring import Carried, NodeRing

__all__ = ["SIZES", "Upkeep", "add_arguments", "heartbeats", "run", "upkeep"]

SIZES = {"mesh": (8, 16, 32), "ring": (8, 16, 32)}
_LENGTHS = (0, 128, 1024)
_LIMITS = {"mesh": DEFAULT_LIMITS, "ring": Limits(mesh_brokers=4, idle_link_seconds=2.0)}
_QUIET_SECONDS, _SECONDS = 12.0, 20.0
_FRAME_BYTES = len(frame([b""]))
_PING_BYTES, _PONG_BYTES = (_FRAME_BYTES + len(encode(message)) for message in (Ping(1000), Pong(1000)))
_STORE = (CONTROLS.kind_of(StoreMessage), CONTROLS.kind_of(Routed))
_ROSTER = CONTROLS.kind_of(Roster)
_KINDS = ("heartbeat", "ring", "keys", "other")
_PAPER_MAX = 20
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


_PAPER = """The paper, and here, where what goes out comes in, so that one column is for both figures:
  the same for every l     met
  more with more nodes     met: a ring by about as much each time that they double, a mesh with its links
  below 20 B/s             not met, by twenty to thirty times in a ring: a broker asks its neighbours each second, and
                           tells another one whom it knows, because who answers for a key is to be known within seconds
                           of a death. The paper does not give its intervals; at half a minute ours would be as cheap.
`keys` is no figure of the paper's: subscriptions here are put again before they lapse, and that is the price."""


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
        "most in",
        "most out",
    ):
        table.add_column(heading, justify="left" if heading == "form" else "right")
    good = True
    for form, sizes in arguments.upkeep_sizes.items():
        for count in sizes:
            found = {
                length: upkeep(count, form, length, arguments.seed, arguments.upkeep_seconds) for length in _LENGTHS
            }
            for length, one in found.items():
                table.add_row(
                    *(form, str(count), str(length), f"{one.links:.1f}"),
                    *(f"{one.kinds[kind]:.0f}" for kind in _KINDS[:2]),
                    *(f"{one.overlay:.0f}", f"< {_PAPER_MAX}"),
                    *(f"{one.kinds[kind]:.0f}" for kind in _KINDS[2:]),
                    *(f"{one.in_max:.0f}", f"{one.out_max:.0f}"),
                )
            totals = [one.overlay for one in found.values()]
            good = good and max(totals) <= _DIFFER_MAX * min(totals)
        table.add_section()
    target = console()
    target.print(table)
    target.print(_PAPER)
    return 0 if good else 1
