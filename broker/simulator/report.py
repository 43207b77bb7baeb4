"""The report: verdicts as lines for people."""

from __future__ import annotations

from collections.abc import Iterable

from .scenarios import Verdict

__all__ = ["Summary", "command_of", "verdict_lines"]


def command_of(verdict: Verdict) -> str:
    """What to type to see this run again."""
    options = verdict.options
    parts = [
        "python -m headgate.broker.simulator",
        f"--seed {options.seed} --steps {options.steps} --clients {options.clients}",
        f"--faults {','.join(options.faults) or 'none'}",
    ]
    if options.ablation:
        parts.append(f"--ablate {options.ablation}")
    if not options.checked:
        parts.append("--fast")
    return " ".join(parts)


def verdict_lines(verdict: Verdict) -> list[str]:
    """One run."""
    counts = ", ".join(f"{count:,} {name}" for name, count in verdict.counts.items())
    lines = [
        f"seed     {verdict.options.seed}",
        f"digest   {verdict.digest}",
        f"happened {counts}, {verdict.seconds:.1f} virtual seconds",
        f"verdict  {verdict.failure or 'every promise was kept'}",
    ]
    if verdict.failure:
        lines.append(f"again    {command_of(verdict)}")
    return [*lines, *verdict.details.splitlines()]


class Summary:
    """Adds up a campaign."""

    def __init__(self) -> None:
        self.runs = 0
        self.failures = 0
        self.counts: dict[str, int] = {}

    def add(self, verdict: Verdict) -> None:
        """One more run."""
        self.runs += 1
        self.failures += bool(verdict.failure)
        for name, count in verdict.counts.items():
            self.counts[name] = self.counts.get(name, 0) + count

    def add_all(self, verdicts: Iterable[Verdict]) -> Summary:
        """Many more."""
        for verdict in verdicts:
            self.add(verdict)
        return self

    def lines(self) -> list[str]:
        """The sums, and what never happened."""
        happened = ", ".join(f"{count:,} {name}" for name, count in self.counts.items() if count)
        never = ", ".join(name for name, count in self.counts.items() if not count)
        lines = [f"{self.runs} seeds, {self.failures} failed", f"happened: {happened}"]
        if never:
            lines.append(f"never happened: {never}")
        return lines
