"""`headgate producers`: how far the producers of a job have come, as brokers remember it."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from typing import Any

from headgate.protocol.spark.writing import Mark, mark_of

from ..exits import DONE, REFUSED
from ..server import add_server_arguments, converse
from ..tables import print_json, print_table

__all__ = ["add_arguments", "run"]

_COLUMNS = ("producer", "events", "mode", "batch", "of the batch", "begun")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `producers`."""
    add_server_arguments(parser)
    text = "STREAM/JOB, as `save()` says it: the stream, and Spark's producerId or the id of a streaming query"
    parser.add_argument("job", metavar="NAME", help=text)
    parser.add_argument("--json", action="store_true", help="one line of JSON")


def run(arguments: argparse.Namespace) -> int:
    """Ask, page by page, and print."""
    known: dict[str, Any] = {}

    async def pages(client: Any) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        after: str | None = ""
        while after is not None:
            page = await client.ask("producers", job=arguments.job, after=after)
            rows += page["producers"]
            after = page["next"]
            known.update(known=page["known"], limit=page["limit"])
        return rows

    rows = [_row(row) for row in converse(arguments, pages)]
    events = sum(row["events"] for row in rows)
    if arguments.json:
        print_json({"job": arguments.job, "partitions": len(rows), "events": events, **known, "producers": rows})
        return DONE
    if not rows:
        text = f"no broker remembers producers of {arguments.job}: a job of Spark is named STREAM/PRODUCERID"
        print(f"headgate producers: {text}", file=sys.stderr)
        return REFUSED
    print_table(_COLUMNS, ([row[name.replace(" ", "_")] for name in _COLUMNS] for row in rows))
    text = (
        f"{events:,} events, {len(rows)} partitions. This broker remembers the {known['limit']:,} producers that were "
    )
    print(text + f"used last, and has {known['known']:,}", file=sys.stderr)
    return DONE


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """The row of a producer as a broker told it, with the content of its mark."""
    mark: Mark | None = mark_of(row["digest"])
    return {
        "producer": row["name"],
        "events": row["next"],
        "epoch": row["epoch"],
        "mode": None if mark is None else mark.mode,
        "batch": None if mark is None else mark.batch,
        "of_the_batch": None if mark is None else row["next"] - mark.base,
        "begun": None if mark is None else datetime.fromtimestamp(mark.run // 1_000_000, UTC).isoformat(),
    }
