"""What the demo shows: a live table at a terminal, lines elsewhere, and the verdict at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from rich.box import SIMPLE_HEAD
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ..tables import console_for
from .accident import Accident
from .audience import Listener
from .host import BrokerProcess
from .limits import LINE_SECONDS, TABLE_SECONDS
from .orders import OrdersTold
from .proof import Verdict

__all__ = ["Picture", "View", "summary"]


@dataclass(slots=True)
class Picture:
    """The state of the play at one moment."""

    published: int
    seconds: float
    listeners: Sequence[Listener]

    @property
    def rate(self) -> float:
        """Events published a second, on the average so far."""
        return self.published / self.seconds if self.seconds else 0.0


class View:
    """Shows pictures, not more often than is worth it. Use it in `with`."""

    def __init__(self, plain: bool, file: IO[str]) -> None:
        self._console = console_for(file, 160)
        self._plain = plain or not self._console.is_terminal
        self._live = None if self._plain else Live(console=self._console, auto_refresh=False)
        self._pause = LINE_SECONDS if self._plain else TABLE_SECONDS
        self._next = self._pause if self._plain else 0.0

    def __enter__(self) -> View:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *details: object) -> None:
        self._stop()

    def say(self, text: str) -> None:
        """Print a line."""
        self._console.print(text)

    def brokers(self, brokers: Sequence[BrokerProcess]) -> None:
        """Show the brokers."""
        if len(brokers) == 1:
            (broker,) = brokers
            self.say(f"a broker listens on {broker.address}, its metrics are at http://{broker.admin}/metrics")
            return
        self.say(f"{len(brokers)} brokers are one cluster; look inside with headgate --server ADDRESS ring")
        for broker in brokers:
            self.say(f"  {broker.name} listens on {broker.address}, its metrics are at http://{broker.admin}/metrics")

    def killed(self, victim: BrokerProcess, accident: Accident, listeners: Sequence[Listener], seconds: float) -> None:
        """Say that a broker is killed, and which clients are connected to it."""
        hit = [listener.wish.name for listener in listeners if accident.hit(listener)]
        self.say(
            f"{seconds:5.1f} s  {victim.name} (process {victim.pid}) is killed with SIGKILL, on purpose: the feed and "
            f"{len(hit)} of {len(listeners)} subscribers ({', '.join(hit)}) are connected to it"
        )

    def aftermath(self, accident: Accident, listeners: Sequence[Listener], verdicts: Sequence[Verdict]) -> None:
        """Show what the kill did to the feed and to each subscriber."""
        self.say(f"{accident.broker} was killed after {accident.published:,} quotes:")
        back = _seconds(None if accident.feed_back_at is None else accident.feed_back_at - accident.at)
        count = accident.unknown_count
        doubt = f"; the outcome of {count:,} quotes is unknown, and it was told so" if count else ""
        self.say(f"  the feed published again {back}{doubt}")
        width = max(len(one.wish.name) for one in listeners)
        for listener, verdict in zip(listeners, verdicts, strict=True):
            self.say(f"  {listener.wish.name:<{width}}  {_fate(accident, listener, verdict)}")
        slowest = accident.slowest_seconds(listeners)
        lost = sum(verdict.in_gap for verdict in verdicts)
        self.say(
            f"  every subscription was in force again {_seconds(slowest)}; "
            f"{lost:,} deliveries were lost, all of them in gaps that were announced"
        )

    def orders(self, told: OrdersTold) -> None:
        """What came of the orders of the durable subscriber."""
        fate = "its process was killed with its broker, and another one went on" if told.killed else "it was never away"
        again = f", {told.redelivered:,} of them twice, marked as redelivered" if told.redelivered else ""
        self.say(f"the durable subscriber took {told.taken:,} of {told.published:,} orders{again}; {fate}")
        if not told.exact:
            self.say(
                f"NOT EXACT: {told.missing:,} orders are missing, {told.repeated:,} came twice and were not marked"
            )

    def show(self, picture: Picture) -> None:
        """Show a picture when it is due."""
        if picture.seconds < self._next:
            return
        self._next = picture.seconds + self._pause
        if self._live is not None:
            self._live.update(_table(picture), refresh=True)
        else:
            delivered = ", ".join(f"{one.wish.name} {one.delivered:,}" for one in picture.listeners)
            self._console.print(f"{picture.seconds:5.1f} s  published {picture.published:,}  delivered: {delivered}")

    def show_last(self, picture: Picture) -> None:
        """Show the last picture, which stays; what is said from now on comes below it."""
        if self._live is not None:
            self._live.update(_table(picture), refresh=True)
            self._stop()
        else:
            self._console.print(_table(picture))

    def audit(self, told: Mapping[str, Any]) -> None:
        """Show the report of the audit."""
        for line in told["lines"]:
            wanted = f"{line['pattern']} WHERE {line['condition']}" if line["condition"] else line["pattern"]
            faults = ", ".join([f"{line[kind]:,} {kind}" for kind in ("lost", "duplicate", "wrong") if line[kind]])
            self.say(
                f"  expected {line['expected']:>7,}  in the log as delivered {line['delivered']:>7,}  "
                f"{faults or 'exact'}  {wanted}"
            )
        for trouble in told["troubles"]:
            self.say(f"  {trouble}")
        if told["clean"]:
            self.say(
                f"Spark agrees, from the logs of {told['events']:,} quotes: nothing lost, nothing wrong, nothing twice"
            )
        else:
            self.say("SPARK DOES NOT AGREE: see the lines above")

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def verdict(self, verdicts: Sequence[Verdict]) -> None:
        """One line a subscriber, and one for all."""
        width = max(len(one.wish.name) for one in verdicts)
        for one in verdicts:
            self.say(f"  {one.wish.name:<{width}}  expected {one.expected:>9,}  got {one.delivered:>9,}  {one.text}")
        if all(one.exact for one in verdicts):
            excused = any(one.in_gap or one.doubtful for one in verdicts)
            lost = "nothing lost but what was announced" if excused else "nothing lost"
            late = sum(one.overtaken for one in verdicts)
            order = f"; {late:,} came out of order, where order is not promised" if late else ""
            self.say(f"every subscriber got exactly what it asked for: {lost}, nothing more, nothing twice{order}")
        else:
            self.say("NOT EXACT: see the lines above")


def _seconds(seconds: float | None) -> str:
    return "no more" if seconds is None else f"after {seconds:.2f} s"


def _fate(accident: Accident, listener: Listener, verdict: Verdict) -> str:
    """The effect of the accident on one subscriber."""
    where = f"moved to {listener.broker}" if accident.hit(listener) else f"stayed with {listener.broker}"
    if not listener.told:
        return f"{where}, and was told of no gap"
    served = accident.served_again_seconds(listener)
    following = f"next quote {_seconds(served)}" if served is not None else "no quote since"
    return (
        f"{where}; in force again {_seconds(accident.in_force_seconds(listener))}, {following}; "
        f"{verdict.in_gap:,} of its quotes lost in its gap"
    )


def _table(picture: Picture) -> Table:
    title = f"published {picture.published:,} in {picture.seconds:.1f} s ({picture.rate:,.0f} a second)"
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, expand=False)
    table.add_column("subscriber", overflow="fold")
    table.add_column("at", no_wrap=True)
    for heading in ("delivered", "selectivity", "p50", "p99"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in picture.listeners:
        wish = one.wish
        share = one.delivered / picture.published if picture.published else 0.0
        table.add_row(
            Text.assemble(
                (wish.name, "bold"), "\n", f"{wish.pattern} WHERE {wish.where}" if wish.where else wish.pattern
            ),
            one.broker,
            f"{one.delivered:,}",
            f"{share:.2%}",
            f"{one.latency(0.5) * 1000:.1f} ms",
            f"{one.latency(0.99) * 1000:.1f} ms",
        )
    return table


def summary(picture: Picture, verdicts: Sequence[Verdict], accident: Accident | None = None) -> dict[str, Any]:
    """The result of the demo as JSON."""
    subscribers = []
    for listener, verdict in zip(picture.listeners, verdicts, strict=True):
        subscribers.append(
            {
                "name": verdict.wish.name,
                "pattern": verdict.wish.pattern,
                "where": verdict.wish.where,
                "delivered": verdict.delivered,
                "expected": verdict.expected,
                "missing": verdict.missing,
                "unexpected": verdict.unexpected,
                "repeated": verdict.repeated,
                "misordered": verdict.misordered,
                "missing_examples": verdict.missing_examples,
                "unexpected_examples": verdict.unexpected_examples,
                "lost": listener.lost,
                "p50_seconds": listener.latency(0.5),
                "p99_seconds": listener.latency(0.99),
                "exact": verdict.exact,
                "broker": listener.broker,
                "in_gap": verdict.in_gap,
                "doubtful": verdict.doubtful,
                "overtaken": verdict.overtaken,
                "gaps": len(listener.told),
                "in_force_seconds": accident.in_force_seconds(listener) if accident is not None else None,
            }
        )
    return {
        "published": picture.published,
        "seconds": picture.seconds,
        "exact": all(verdict.exact for verdict in verdicts),
        "killed": _killed(accident, picture.listeners) if accident is not None else None,
        "subscribers": subscribers,
    }


def _killed(accident: Accident, listeners: Sequence[Listener]) -> dict[str, Any]:
    back = accident.feed_back_at
    return {
        "broker": accident.broker,
        "published": accident.published,
        "unknown": accident.unknown_count,
        "feed_seconds": back - accident.at if back is not None else None,
        "in_force_seconds": accident.slowest_seconds(listeners),
        "moved": [listener.wish.name for listener in listeners if accident.hit(listener)],
    }
