"""What the demo shows: a live table at a terminal, lines elsewhere, and the verdict at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from .audience import Listener
from .limits import LINE_SECONDS, TABLE_SECONDS
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
        self._console = Console(file=file, highlight=False, markup=False)
        self._plain = plain or not self._console.is_terminal
        if not self._console.is_terminal:
            self._console.width = 160
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
        """A line of its own."""
        self._console.print(text)

    def show(self, picture: Picture) -> None:
        """Show a picture when its time has come."""
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
            self.say("every subscriber got exactly what it asked for: nothing lost, nothing more, nothing twice")
        else:
            self.say("NOT EXACT: see the lines above")


def _table(picture: Picture) -> Table:
    title = f"published {picture.published:,} in {picture.seconds:.1f} s ({picture.rate:,.0f} a second)"
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, expand=False)
    table.add_column("subscriber", overflow="fold")
    for heading in ("delivered", "selectivity", "p50", "p99"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in picture.listeners:
        wish = one.wish
        share = one.delivered / picture.published if picture.published else 0.0
        table.add_row(
            Text.assemble(
                (wish.name, "bold"), "\n", f"{wish.pattern} WHERE {wish.where}" if wish.where else wish.pattern
            ),
            f"{one.delivered:,}",
            f"{share:.2%}",
            f"{one.latency(0.5) * 1000:.1f} ms",
            f"{one.latency(0.99) * 1000:.1f} ms",
        )
    return table


def summary(picture: Picture, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """The end of the play for a program."""
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
            }
        )
    return {
        "published": picture.published,
        "seconds": picture.seconds,
        "exact": all(verdict.exact for verdict in verdicts),
        "subscribers": subscribers,
    }
