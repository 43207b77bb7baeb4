"""A scenario: one world with its workloads, faults and checkers, played in phases, from one seed to one verdict.

Options     what a run is made from; everything else is drawn from its seed. Each kind has its own, and its command
            line is read from their fields
Scenario    the parts of one run: the presets of the four kinds fill them in
play        one run to its verdict: a broken promise is one, and so is whatever the product raises
"""

from __future__ import annotations

import traceback
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, TypeVar

from headgate.broker.core.effects import Effect
from headgate.broker.core.inputs import Input
from headgate.protocol.errors import ErrorCode, HeadgateError, ProtocolViolation

from ..checkers import Checker
from ..engine import Host, Trace, Violation, World
from ..faults import Nemesis

__all__ = [
    "PROGRAM",
    "Options",
    "Scenario",
    "Verdict",
    "Write",
    "command_of",
    "flags",
    "listed",
    "option",
    "play",
    "within",
]

Write = Callable[[str], object]
_T = TypeVar("_T")

PROGRAM = "python -m headgate.broker.simulator"
_SOUND_EVERY = 64
"""Steps between two validations of a Node, since validating takes longer than most steps."""


def option(default: _T, text: str, read: Callable[[str], Any] = str, flag: str = "", **more: Any) -> _T:
    """A field of Options that is an argument of the command line: its help, and how its text is read."""
    value: Any = field(default=default, metadata={"help": text, "read": read, "flag": flag, **more})
    return value  # type: ignore[no-any-return]  # the class turns it into the default


def within(low: float, high: float, number: Callable[[str], Any] = int) -> Callable[[str], Any]:
    """The type of an argument that is a number in this range."""

    def read(text: str) -> Any:
        value = number(text)
        if not low <= value <= high:
            raise ArgumentTypeError(f"a number from {low:g} to {high:g}, not {text}")
        return value

    return read


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a run: with the code they decide everything in it."""

    words: ClassVar[tuple[str, ...]] = ()
    """The words that select this kind on the command line."""
    about: ClassVar[str] = ""

    seed: int = option(1, "everything in a run follows from it (1)", int)

    def scenario(self, write: Write | None) -> Scenario:
        """Make a scenario of this kind."""
        raise NotImplementedError


def flags(kind: type[Options] | Options) -> Iterator[tuple[str, Any]]:
    """The (flag, field) pairs of a kind's command line."""
    for one in fields(kind):
        if "help" in one.metadata:
            yield one.metadata["flag"] or f"--{one.name.replace('_', '-')}", one


def command_of(options: Options) -> str:
    """The command that repeats this run."""
    words = [PROGRAM, *options.words]
    for flag, one in flags(options):
        value = getattr(options, one.name)
        if isinstance(value, bool):
            words += [flag] if value else []
        elif isinstance(value, tuple):
            words.append(f"{flag} {','.join(value) or 'none'}")
        elif value != one.default or "choices" not in one.metadata:
            words.append(f"{flag} {value}".removesuffix(".0"))
    return " ".join(words)


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a run ended. `failure` is empty when it went well.

    `digest` is that of the trace: every run of a seed has the same, whatever the hash seed, the machine or the day.
    """

    options: Options
    swarm: str
    digest: str
    failure: str
    details: str
    seconds: float
    counts: dict[str, int]

    def lines(self) -> list[str]:
        """The report as lines."""
        return [
            command_of(self.options),
            f"swarm    {self.swarm}",
            f"happened {listed(self.counts)}; {self.seconds:.1f} virtual seconds",
            f"digest   {self.digest}",
            f"verdict  {self.failure or 'every promise was kept'}",
            *self.details.splitlines(),
        ]


class Scenario:
    """The parts of one run. A preset makes them in its `__init__` and says in `phases` what is played with them."""

    endings: ClassVar[tuple[ErrorCode, ...]] = tuple(ErrorCode)
    """Codes with which a session may end although neither end broke the protocol."""

    world: World
    checkers: Sequence[Checker] = ()
    nemesis: Nemesis | None = None

    def __init__(self, options: Options, write: Write | None = None, whole: bool = False) -> None:
        self.trace = Trace(write, whole)
        self.swarm = ""
        self.steps = 0
        self.trace.line(f"{options}")

    def phases(self) -> Sequence[Callable[[], None]]:
        """The phases, in order."""
        raise NotImplementedError

    def play(self) -> None:
        """Play all phases. Raises Violation."""
        for phase in self.phases():
            phase()

    def counts(self) -> dict[str, int]:
        """Counters for the report: a campaign that never cut a connection proves nothing about cuts."""
        return {"steps": self.world.steps} | (dict(self.nemesis.done) if self.nemesis is not None else {})

    def last_lines(self) -> Iterable[str]:
        """The last lines of the trace: the results of the run. Calling this changes nothing."""
        return ()

    # --- For the world of a preset -----------------------------------------------------------------------------------

    def watch(self, host: Host, happened: Input, effects: Sequence[Effect]) -> None:
        """Trace one step of a Host, and show it to the checkers."""
        self.trace.step(self.world.now, host.node.config.name, happened, effects, host.cause)
        for checker in self.checkers:
            checker.step(host, happened, effects)
        self.steps += 1
        if self.steps % _SOUND_EVERY == 0:
            self.look_closely(host)

    def look_closely(self, host: Host) -> None:
        """Validate a Node. Raises Violation."""
        try:
            host.node.validate()
        except AssertionError as error:
            where = traceback.format_exception(error)[-2].strip()
            raise Violation("SoundNode", f"{host.node.config.name}: {where} {error}") from error

    def session_failed(self, side: str, failure: HeadgateError) -> None:
        """A session failed. Raises Violation when an end refused what the other sent; checkers judge ERRORs."""
        code = failure.code if isinstance(failure, ProtocolViolation) else ErrorCode.PROTOCOL
        if code not in self.endings:
            raise Violation("CleanProtocol", f"the {side} refused what it was sent: {failure}")


def play(options: Options, write: Write | None = None) -> Verdict:
    """Play one run to its verdict."""
    scenario = options.scenario(write)
    failure = details = ""
    try:
        scenario.play()
    except Violation as violation:
        failure, details = str(violation), "".join(traceback.format_exception(violation))
    except Exception as error:  # the simulator reports any crash of the product
        failure = f"Crash: {type(error).__name__}: {error}"
        details = "".join(traceback.format_exception(error))
    for line in scenario.last_lines():
        scenario.trace.line(line)
    seconds, counts = scenario.world.now, scenario.counts()
    return Verdict(options, scenario.swarm, scenario.trace.digest, failure, details, seconds, counts)


def listed(counts: dict[str, int]) -> str:
    """Counts with their names, for people."""
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())
