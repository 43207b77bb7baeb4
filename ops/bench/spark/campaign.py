"""Spark jobs under kills: run again and again, with other numbers of partitions, each is exact or refused.

    make spark-campaign ARGS="--rows 500000 --runs 10"      or python -m headgate.ops.bench.spark.campaign

Three brokers, and a Spark driver with two executors. A run is one job under one `producerId`: it is submitted, and
submitted again with 1, 2, 4 and 7 partitions in some order, while one of these is done to it:

    task        every attempt of its tasks dies after so many rows, so the job fails
    broker      a broker is killed with SIGKILL, and started again a moment later
    executor    a JVM of an executor, or one of its Python workers, is killed
    driver      the driver is killed in the middle of the job, and another one submits the next

Then it is submitted without any fault until somebody finishes it. The first submission of a run has each of the faults
in turn. What has to be true is in `broken`: nothing is ever there twice, who was refused has sent nothing, in guarded
mode nobody with other partitions than those in the log sends anything, even if it is killed before it can be refused,
and at the end every row is there. Prints a line for each run and one of JSON; the exit code is 1 when something was not
so.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from headgate.protocol.aio import Tasks, connect

from ...jobs import missing_parts
from ..kit import SOURCES, Fleet, MeasurementFailed, fleet
from ..limits import CAMPAIGN_ANSWER_SECONDS_MAX, CAMPAIGN_QUIET_SECONDS_MAX, CAMPAIGN_START_SECONDS_MAX
from .driver import DIED

__all__ = ["FAULTS", "PARTITIONS", "Run", "Submission", "add_arguments", "broken", "campaign", "main", "run"]

FAULTS = ("task", "broker", "executor", "driver")
PARTITIONS = (1, 2, 4, 7)
_MODES = ("guarded", "id")
_KILLED = "driver killed"
_LOOK_SECONDS = 0.02
_QUIET_SECONDS = 1.0
_JOB = "nightly"
_REFUSED = ("OTHER_WRITE", "NONDETERMINISTIC_INPUT", "IDS_UNKNOWN")
_MAY_END_WITH = ("CANNOT_CONNECT", "PRODUCER_FENCED", "REFUSED", DIED, _KILLED)


@dataclass(frozen=True, slots=True)
class Submission:
    """One `save()`: with which fault (`hit`: it came in time), what it said, and the events in the log around it.

    `is_other` says that the log had rows of another number of partitions, as far as only these can have them.
    """

    partitions: int
    fault: str
    hit: bool
    answer: str
    before: int
    after: int
    is_other: bool = False

    def __str__(self) -> str:
        fault = f" +{self.fault}" if self.hit else ""
        more = f"{self.before}->" if self.before != self.after else ""
        return f"{self.partitions}p{fault}: {self.answer} {more}{self.after}"


@dataclass(slots=True)
class Run:
    """All submissions of one job, and what Spark counts in the end: events, numbers, the largest number."""

    name: str
    mode: str
    submissions: list[Submission] = field(default_factory=list)
    counted: tuple[int, int, int] = (0, 0, -1)


def broken(run: Run, rows: int) -> list[str]:
    """The faults that were found."""
    wrong = []
    for one in run.submissions:
        if not 0 <= one.before <= one.after <= rows:
            wrong.append(f"{one}: {one.before} events before it")
        if one.answer == "ok" and one.after != rows:
            wrong.append(f"{one}: it said that all {rows} are there")
        if one.answer in _REFUSED and one.after != one.before:
            wrong.append(f"{one}: refused, and {one.after - one.before} events more")
        if run.mode == "guarded" and one.is_other and (one.answer == "ok" or one.after != one.before):
            wrong.append(f"{one}: the log has rows of other partitions")
        if run.mode == "id" and not one.hit and one.answer != "ok":
            wrong.append(f"{one}: nothing was done to it, and ids go with any partitions")
        if one.answer not in ("ok", *_REFUSED, *_MAY_END_WITH) and not (one.hit and one.fault == "executor"):
            wrong.append(f"{one}: an answer that nobody expects")
    if run.counted != (rows, rows, rows - 1):
        wrong.append(f"at the end {run.counted[0]} events, {run.counted[1]} different, for {rows} rows")
    return [f"{run.name}: {text}" for text in wrong]


class _Driver:
    """The process of `driver`, which is started again after a kill."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: asyncio.subprocess.Process | None = None
        self.lives = 0

    async def here(self) -> None:
        """Start it, unless it runs; a kill is of a job, not of a start."""
        if self._process is None:
            await self._start()

    async def ask(self, **order: Any) -> Any:
        """Its answer; None when it was killed before."""
        process = self._process
        assert process is not None and process.stdin is not None, "it is here"
        process.stdin.write(json.dumps(order).encode() + b"\n")
        answer = await self._answer(process, CAMPAIGN_ANSWER_SECONDS_MAX)
        if answer is None:
            await self._gone()
        return answer

    def kill(self) -> None:
        """SIGKILL to it, its Java and its executors' Java. Their Python workers find out by themselves."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)

    def kill_executor(self, random: Random) -> str:
        """SIGKILL to an executor or to one of its Python workers; which."""
        assert self._process is not None, "it was started"
        children = list(_descendants(self._process.pid))
        java = [pid for pid, command in children if "CoarseGrainedExecutorBackend" in command]
        python = [pid for pid, command in children if "pyspark.daemon pyspark.worker" in command]
        chosen = python if python and random.random() < 0.5 else java
        if not chosen:
            return ""
        try:
            os.kill(random.choice(chosen), signal.SIGKILL)
        except ProcessLookupError:
            return ""
        return "Python worker" if chosen is python else "executor"

    async def end(self) -> None:
        """Stop it and do not start it again."""
        self.kill()
        await self._gone()

    async def _start(self) -> None:
        self.lives += 1
        folder = self._folder / f"driver-{self.lives}"
        folder.mkdir()
        with (folder / "errors.log").open("wb") as errors:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "headgate.ops.bench.spark.driver", str(folder)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=folder,
                env=os.environ | {"PYTHONPATH": os.pathsep.join([str(SOURCES), os.environ.get("PYTHONPATH", "")])},
                start_new_session=True,
            )
        if await self._answer(self._process, CAMPAIGN_START_SECONDS_MAX) is None:
            words = (folder / "errors.log").read_text(errors="replace").splitlines()[-3:]
            raise MeasurementFailed("Spark", f"does not start: {' / '.join(words)}")

    async def _answer(self, process: asyncio.subprocess.Process, seconds: float) -> Any:
        assert process.stdout is not None
        try:
            async with asyncio.timeout(seconds):
                while line := await process.stdout.readline():
                    if line.startswith(b'{"answer"'):
                        return json.loads(line)["answer"]
        except TimeoutError:
            raise MeasurementFailed("Spark", f"has not answered for {seconds:g} s") from None
        return None

    async def _gone(self) -> None:
        if self._process is not None:
            await self._process.wait()
            self._process = None


def _descendants(pid: int) -> Iterator[tuple[int, str]]:
    """Every process under this one, and its command."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    found = {pid}
    for _ in range(8):  # a driver, its Java, the executors' Java, their Python, its workers
        found |= {int(row[0]) for row in rows if int(row[1]) in found}
    return ((int(row[0]), row[2]) for row in rows if int(row[0]) in found)


class _Campaign:
    def __init__(self, rows: int, again: int, seed: int, cluster: Fleet, driver: _Driver) -> None:
        self.rows = rows
        self._again = again
        self._random = Random(seed)
        self._cluster = cluster
        self._driver = driver
        self._tasks = Tasks()
        self._pace = 2.0 + rows / 100_000
        self.faults: Counter[str] = Counter()

    async def end(self) -> None:
        """Stop all tasks, whatever happened."""
        await self._tasks.stop()

    async def one(self, mode: str, number: int, fault: str) -> Run:
        """A job from its first submission, with this fault, until it is done."""
        run, random = Run(f"{mode}{number}", mode), self._random
        async with await connect(self._cluster.addresses_from(0)) as client:
            await client.ask("schema.put", stream=run.name, schema={"durability": "stored"})
        await self._submit(run, random.choice(PARTITIONS[1:]), fault)
        again = random.sample(PARTITIONS, len(PARTITIONS))
        for partitions in again[: self._again]:
            await self._submit(run, partitions, random.choice(("", "", *FAULTS)))
        for partitions in (run.submissions[0].partitions, *again):
            if (await self._submit(run, partitions, "")).answer == "ok":
                break
        await self._driver.here()
        counted = await self._driver.ask(do="count", options=self._options(run))
        run.counted = counted[0], counted[1], counted[2]
        return run

    def _options(self, run: Run) -> dict[str, str]:
        return {"headgate.bootstrap.servers": ",".join(self._cluster.addresses), "topic": run.name}

    async def _submit(self, run: Run, partitions: int, fault: str) -> Submission:
        more = {"producerId": _JOB, "ackTimeout": "5s", "maxFrameBytes": "64k"}
        if run.mode == "id":
            more["eventIdColumn"] = "n"
        order = {"rows": self.rows, "partitions": partitions, "options": {**self._options(run), **more}}
        if fault == "task":
            order["dying"] = self._random.randrange(1_000, max(1_001, self.rows // partitions))
        await self._driver.here()
        before, is_other = await self._stored(run), await self._is_other(run, partitions)
        work = self._tasks.start(self._driver.ask(do="save", **order), "a job")
        hit = await self._harm(run, fault, work, before)
        answer = await work
        await self._cluster.together()
        after = await self._quiet(run)
        one = Submission(partitions, fault, hit, _KILLED if answer is None else answer, before, after, is_other)
        if hit:
            self.faults[fault] += 1
        run.submissions.append(one)
        return one

    async def _harm(self, run: Run, fault: str, work: asyncio.Future[Any], before: int) -> bool:
        """Inject the fault in the middle of the job; returns whether it came in time."""
        if fault in ("", "task"):
            return fault == "task"
        if before < self.rows:
            mark = self._random.randrange(before, before + max(1, (self.rows - before) * 3 // 4))
            deadline = time.monotonic() + self._random.uniform(0.3, self._pace)  # a job that was refused sends nothing
            while not work.done() and time.monotonic() < deadline and await self._stored(run) <= mark:
                await asyncio.wait({work}, timeout=_LOOK_SECONDS)
        else:
            await asyncio.wait({work}, timeout=self._random.uniform(0.2, 1.5))
        if work.done():
            return False
        if fault == "driver":
            self._driver.kill()
        elif fault == "executor":
            return bool(self._driver.kill_executor(self._random))
        else:
            member = self._random.choice(self._cluster.members)
            member.kill()
            await asyncio.wait({work}, timeout=self._random.uniform(0.2, 2.0))
            member.start()
        return True

    async def _is_other(self, run: Run, partitions: int) -> bool:
        """Whether the first that published had another number of partitions, and rows of its second one are there.

        The first row of that one is another in each of PARTITIONS; a beginning of partition 0 may be in several.
        """
        first = next((one.partitions for one in run.submissions if one.after > one.before), partitions)
        if first == partitions:
            return False
        async with await connect(self._cluster.addresses_from(0)) as client:
            told = await client.ask("producers", job=f"{run.name}/{_JOB}", after="", begins=b"", unless=b"")
        return any(row["next"] and not row["name"].endswith("/0") for row in told["producers"])

    async def _quiet(self, run: Run) -> int:
        """Events in the log when no worker of a killed driver or task adds any more."""
        before, after = -1, await self._stored(run)
        deadline = time.monotonic() + CAMPAIGN_QUIET_SECONDS_MAX
        while before != after:
            if time.monotonic() > deadline:
                raise MeasurementFailed("Spark", f"still publishes {CAMPAIGN_QUIET_SECONDS_MAX:g} s after its job")
            await asyncio.sleep(_QUIET_SECONDS)
            before, after = after, await self._stored(run)
        return after

    async def _stored(self, run: Run) -> int:
        async with await connect(self._cluster.addresses_from(0)) as client:
            return sum(log.next for log in await client.logs(run.name))


async def campaign(rows: int, runs: int, again: int, seed: int, folder: Path) -> tuple[list[str], Counter[str]]:
    """Run it, and print each run; what was broken, and how often each fault came in time."""
    wrong: list[str] = []
    async with fleet(3, folder) as cluster:
        driver = _Driver(folder)
        story = _Campaign(rows, again, seed, cluster, driver)
        try:
            for mode in _MODES:
                for number in range(runs):
                    begun = time.monotonic()
                    one = await story.one(mode, number, FAULTS[(seed + number + _MODES.index(mode)) % len(FAULTS)])
                    wrong += broken(one, rows)
                    said = "; ".join(str(submission) for submission in one.submissions)
                    seconds = time.monotonic() - begun
                    print(f"{mode} {number}: {said}; counted {one.counted[:2]}, {seconds:.0f} s", flush=True)
        finally:
            await story.end()
            await driver.end()
    return wrong, story.faults


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How many rows a job has, how many jobs there are in each mode, and where chance begins."""
    parser.add_argument("--rows", type=int, default=100_000, metavar="N", help="rows of a job (%(default)s)")
    parser.add_argument("--runs", type=int, default=4, metavar="N", help="jobs in each mode (%(default)s)")
    text = "submissions of a job, each with other partitions, between its first and its last (%(default)s)"
    parser.add_argument("--again", type=int, default=len(PARTITIONS), choices=range(len(PARTITIONS) + 1), help=text)
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="where chance begins (%(default)s)")


def run(arguments: argparse.Namespace) -> int:
    """Run the campaign and say what was broken."""
    if missing := missing_parts():
        print(f"not measured: install {missing}", file=sys.stderr)
        return 1
    with TemporaryDirectory(prefix="headgate-campaign-") as folder:
        try:
            work = campaign(arguments.rows, arguments.runs, arguments.again, arguments.seed, Path(folder))
            wrong, faults = asyncio.run(work)
        except MeasurementFailed as failure:
            print(f"failed: {failure}", file=sys.stderr)
            return 1
    for line in wrong:
        print(line, file=sys.stderr)
    figures = {"rows": arguments.rows, "runs": arguments.runs, "seed": arguments.seed, "faults": dict(faults)}
    print(json.dumps({**figures, "broken": len(wrong)}), flush=True)
    return 1 if wrong else 0


def main(words: Sequence[str] | None = None) -> int:
    """`python -m headgate.ops.bench.spark.campaign`."""
    parser = argparse.ArgumentParser(prog="make spark-campaign", description=(__doc__ or "").splitlines()[0])
    add_arguments(parser)
    return run(parser.parse_args(words))


if __name__ == "__main__":
    sys.exit(main())
