"""The audit of a chaos run: Spark computes the result from the brokers' logs, and must agree with the ledger.

The ledger knows what clients saw; the audit knows nothing but three logs. They agree when

* the audit finds nothing lost that was not announced, nothing wrong, nothing twice;
* of the calm at the end nothing is missing with one of them and not with the other;
* no more reached the clients than brokers say they sent, or had no time to say when they were killed (`boundary`).

    python -m headgate.ops.bench.chaos.audit SERVERS CALM_FROM

CALM_FROM is in seconds since 1970. It prints one line of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from dataclasses import dataclass
from typing import Any

from headgate.ops.exits import UsageError
from headgate.ops.jobs import LogSource, add_arguments, audit_cluster, missing_parts, start_session, surveys_of
from headgate.protocol.blocking import connect_blocking

from ..kit import MeasurementFailed
from ..limits import CHAOS_AUDIT_SECONDS_MAX
from .ledger import Account

__all__ = ["Ruling", "disagreements", "rule"]

_COUNTS = ("events", "expected", "delivered", "lost", "announced", "duplicate", "wrong", "boundary")


@dataclass(frozen=True, slots=True)
class Ruling:
    """The audit's sums over all streams: of the whole run, and of the calm phase at its end."""

    events: int
    expected: int
    delivered: int
    lost: int
    announced: int
    duplicate: int
    wrong: int
    boundary: int
    troubles: list[str]
    findings: list[Any]
    calm_delivered: int
    calm_lost: int
    disturbances: int
    seconds: float


def disagreements(ruling: Ruling, account: Account) -> list[str]:
    """Where audit and ledger differ; empty when they agree."""
    found = [f"the audit could not see all: {trouble}" for trouble in ruling.troubles]
    silent = ruling.lost - ruling.announced
    for text, count in (("lost in silence", silent), ("wrong", ruling.wrong), ("delivered twice", ruling.duplicate)):
        if count:
            found.append(f"the audit finds {count:,} {text}")
    if ruling.calm_delivered < account.calm_wanted - account.calm_missing:
        came = account.calm_wanted - account.calm_missing
        found.append(f"of the calm {came:,} came, and the audit knows of {ruling.calm_delivered:,}")
    if bool(ruling.calm_lost) != bool(account.calm_missing):
        found.append(f"of the calm the audit misses {ruling.calm_lost:,}, the ledger {account.calm_missing:,}")
    if ruling.delivered + ruling.boundary < account.delivered:
        found.append(f"clients saw {account.delivered:,}, and brokers say they sent {ruling.delivered:,}")
    return found


async def rule(servers: str, calm_from: float) -> Ruling:
    """Run the audit in a process of its own, since Java and the event loop do not mix."""
    words = ("-m", "headgate.ops.bench.chaos.audit", servers, str(calm_from))
    process = await asyncio.create_subprocess_exec(sys.executable, *words, stdout=asyncio.subprocess.PIPE)
    try:
        async with asyncio.timeout(CHAOS_AUDIT_SECONDS_MAX):
            output, _ = await process.communicate()
    except TimeoutError as error:
        process.kill()
        await process.wait()
        raise MeasurementFailed("the audit", f"took more than {CHAOS_AUDIT_SECONDS_MAX:g} seconds") from error
    if process.returncode:
        raise MeasurementFailed("the audit", f"ended with exit code {process.returncode}; see above")
    return Ruling(**json.loads(output.decode().splitlines()[-1]))


def main(servers: str, calm_from: float) -> int:
    """Run both audits in one Spark session."""
    missing = missing_parts()
    if missing:
        raise UsageError(f"the audit needs {missing}")
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    arguments = parser.parse_args([])
    with connect_blocking(servers, name="headgate chaos audit") as client:
        source = LogSource(servers, client)
        surveys = surveys_of(source, None, 0)
        spark = start_session("headgate-chaos", "local[2]")
        source.attach(spark)
        whole = audit_cluster(spark, source, surveys, arguments, 0)
        calm = audit_cluster(spark, source, surveys, arguments, int(calm_from * 1e6))
    streams = whole.streams
    counts = {name: sum(one.events if name == "events" else one.total(name) for one in streams) for name in _COUNTS}
    ruling = {
        **counts,
        "troubles": [trouble for one in streams for trouble in one.troubles],
        "findings": [(one.kind, one.event, one.subscription, one.detail) for each in streams for one in each.findings],
        "calm_delivered": sum(one.total("delivered") for one in calm.streams),
        "calm_lost": sum(one.total("lost") for one in calm.streams),
        "disturbances": len({one.origin for each in streams for one in each.disturbances}),
        "seconds": whole.seconds + calm.seconds,
    }
    print(json.dumps(ruling))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1], float(sys.argv[2])))
    except UsageError as error:
        sys.exit(f"chaos: {error}")
