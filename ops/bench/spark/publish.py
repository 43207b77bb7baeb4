"""`headgate bench spark_publish`: rows of a DataFrame into one broker, stored; beside the same rows through MQTT.

Both read the same Parquet files with the same Spark, two tasks, on the same cores as the servers. Headgate's rate ends
when `save()` returns: every row is in the broker's log, on disk, and the count is asked of the log. The other way is
what people write by hand: `foreachPartition`, the popular MQTT client, QoS 1, mosquitto without persistence, its rate
ending when every message is acknowledged. Its text of a row is made by Spark, so Python has only to send it.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import shutil
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.table import Table

from headgate.ops.jobs import missing_parts, start_session
from headgate.protocol.blocking import connect_blocking

from ..kit import MeasurementFailed, Server, cpu_seconds, free_port, running
from ..limits import SPARK_MQTT_RATIO_MIN, SPARK_ROWS_PER_SECOND_MIN
from ..peers import Mosquitto
from ..wire import console

__all__ = [
    "Rate",
    "add_arguments",
    "measure_headgate",
    "measure_mqtt",
    "missing_for_mqtt",
    "run",
    "served_stream",
    "timed",
    "verdict",
    "write_rows",
]

STREAM = "quotes"
_FILES = 2
_WARM_UP_SHARE = 4
_MQTT_WAITING_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Rate:
    """Rows published, and what it took: seconds on the wall, seconds of processor in the server."""

    rows: int
    seconds: float
    server_seconds: float

    @property
    def rows_per_second(self) -> float:
        """The number that is compared."""
        return self.rows / self.seconds


def write_rows(folder: Path, rows: int, seed: int = 1) -> None:
    """Quotes as Parquet: a long, three short strings, a double, an int, a time and a body of 64 bytes."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    randomness = random.Random(seed)
    for number in range(_FILES):
        low, high = rows * number // _FILES, rows * (number + 1) // _FILES
        count = high - low
        table = pa.table(
            {
                "id": pa.array(range(low, high), pa.int64()),
                "symbol": randomness.choices(["OTE", "IBM", "AAPL", "SAP"], k=count),
                "exchange": randomness.choices(["NYSE", "ATHEX", "XETRA"], k=count),
                "side": randomness.choices(["buy", "sell"], k=count),
                "price": [randomness.random() * 100 for _ in range(count)],
                "volume": pa.array(randomness.choices(range(10_000), k=count), pa.int32()),
                "at": pa.array(range(1_763_000_000_000_000 + low, 1_763_000_000_000_000 + high), pa.timestamp("us")),
                "value": pa.array([randomness.randbytes(64) for _ in range(count)], pa.binary()),
            }
        )
        parquet.write_table(table, folder / f"part-{number}.parquet")


@contextmanager
def served_stream() -> Iterator[Server]:
    """One broker that keeps STREAM."""

    def command(port: int, folder: Path) -> list[str]:
        peers, admin = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
        places = ["--listen", f"127.0.0.1:{port}", "--peer-listen", peers, "--admin", admin]
        return [sys.executable, "-m", "headgate.ops.cli", "serve", *places, "--data", str(folder / "data")]

    with running("headgate", command, None) as server:
        with connect_blocking(f"127.0.0.1:{server.port}") as client:
            client.ask("schema.put", stream=STREAM, schema={"durability": "stored"})
        yield server


def _logged(server: Server) -> int:
    with connect_blocking(f"127.0.0.1:{server.port}") as client:
        return sum(log.next for log in client.logs(STREAM))


def timed(server: Server, rows: int, work: Callable[[], None]) -> Rate:
    """How long it takes to write or read so many rows."""
    processor, start = cpu_seconds(server.pid), time.monotonic()
    work()
    return Rate(rows, time.monotonic() - start, cpu_seconds(server.pid) - processor)


def measure_headgate(session: Any, folder: Path, rows: int, rounds: int) -> list[Rate]:
    """The same rows, so many times, into one broker. Raises MeasurementFailed unless the log has them all."""
    frame = session.read.parquet(str(folder))
    rates = []
    with served_stream() as server:
        options = {"headgate.bootstrap.servers": f"127.0.0.1:{server.port}", "topic": f"{STREAM}/all"}

        def publish(some: Any) -> None:
            some.write.format("headgate").mode("append").options(**options).save()

        publish(frame.where(f"id % {_WARM_UP_SHARE} = 0"))
        for _ in range(rounds):
            before = _logged(server)
            rates.append(timed(server, rows, lambda: publish(frame)))
            if _logged(server) - before != rows:
                raise MeasurementFailed("headgate", f"{_logged(server) - before} of {rows} rows are in the log")
    return rates


def _send_texts(port: int) -> Callable[[Iterator[Any]], None]:
    """A function for foreachPartition that sends every text as a message."""

    def send(rows: Iterator[Any]) -> None:
        import paho.mqtt.client as mqtt

        client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
        client.max_inflight_messages_set(1000)
        client.max_queued_messages_set(0)
        client.connect("127.0.0.1", port)
        client.loop_start()
        waiting: deque[Any] = deque()
        for row in rows:
            waiting.append(client.publish("quotes/all", row.text, qos=1))
            if len(waiting) > _MQTT_WAITING_MAX:
                waiting.popleft().wait_for_publish()
        for one in waiting:
            one.wait_for_publish()
        client.disconnect()
        client.loop_stop()

    return send


def measure_mqtt(session: Any, folder: Path, rows: int) -> Rate:
    """Publish so many rows with the usual hand-written MQTT loop."""
    frame = session.read.parquet(str(folder)).limit(rows).repartition(_FILES)
    texts = frame.selectExpr("to_json(struct(* EXCEPT (value), base64(value) AS body)) AS text").cache()
    texts.count()
    with running("mosquitto", Mosquitto().command, None) as server:
        send = _send_texts(server.port)
        texts.limit(2).foreachPartition(send)
        return timed(server, rows, lambda: texts.foreachPartition(send))


def missing_for_mqtt() -> str:
    """What to install before the other way can be measured; empty when nothing is missing."""
    wanted = []
    if importlib.util.find_spec("paho") is None:
        wanted.append("its client: pip install paho-mqtt")
    if Mosquitto().version() is None:
        wanted.append("its server: apt install mosquitto")
    return " and ".join(wanted)


def verdict(
    stored: list[Rate],
    mqtt: Rate | None,
    rows_per_second_min: float = SPARK_ROWS_PER_SECOND_MIN,
    mqtt_ratio_min: float = SPARK_MQTT_RATIO_MIN,
) -> tuple[bool, str]:
    """Whether what is promised was kept, and the sentence that says so."""
    rate = median(one.rows_per_second for one in stored)
    kept = rate >= rows_per_second_min
    text = f"{rate:,.0f} rows a second, stored; promised are {rows_per_second_min:,}"
    if mqtt is not None:
        ratio = rate / mqtt.rows_per_second
        kept = kept and ratio >= mqtt_ratio_min
        text += f"; {ratio:.0f} times the MQTT loop, promised are {mqtt_ratio_min}"
    return kept, f"{'the promise was kept' if kept else 'the promise was BROKEN'}: {text}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `headgate bench spark_publish`."""
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows (default 1,000,000)")
    parser.add_argument(
        "--rounds", type=int, default=3, help="how often they are published (default 3; the median counts)"
    )
    parser.add_argument("--mqtt-rows", type=int, help="rows of the MQTT loop (default: all; 0: none)")
    parser.set_defaults(rows_per_second_min=SPARK_ROWS_PER_SECOND_MIN, mqtt_ratio_min=SPARK_MQTT_RATIO_MIN)


def run(arguments: argparse.Namespace) -> int:
    """Measure and print; 0 when the promise was kept."""
    missing = missing_parts()
    if missing:
        print(f"this needs {missing}", file=sys.stderr)
        return 1
    mqtt_rows = arguments.rows if arguments.mqtt_rows is None else min(arguments.mqtt_rows, arguments.rows)
    absent = missing_for_mqtt() if mqtt_rows else "--mqtt-rows other than 0"
    session = start_session("headgate-bench", "local[2]")
    session.conf.unset("spark.sql.codegen.wholeStage")  # off is for audits
    folder = Path(tempfile.mkdtemp(prefix="headgate-bench-"))
    try:
        write_rows(folder, arguments.rows)
        stored = measure_headgate(session, folder, arguments.rows, arguments.rounds)
        mqtt = None if absent else measure_mqtt(session, folder, mqtt_rows)
    except MeasurementFailed as failure:
        print(f"failed: {failure}", file=sys.stderr)
        return 1
    finally:
        session.stop()
        shutil.rmtree(folder)
    _print(stored, mqtt)
    if absent:
        print(f"not measured: the MQTT loop, which needs {absent}")
    kept, text = verdict(stored, mqtt, arguments.rows_per_second_min, arguments.mqtt_ratio_min)
    print(text)
    return 0 if kept else 1


def _print(stored: list[Rate], mqtt: Rate | None) -> None:
    table = Table(title="rows of a DataFrame, local[2], servers on the same cores", title_justify="left")
    for name in ("", "rows", "seconds", "rows a second", "server's processor, seconds a million"):
        table.add_column(name, justify="right" if name else "left")
    lines = [(f"headgate, stored, round {number}", rate) for number, rate in enumerate(stored, 1)]
    for name, rate in [*lines, *([("mosquitto, QoS 1, foreachPartition", mqtt)] if mqtt else [])]:
        processor = rate.server_seconds / rate.rows * 1e6
        table.add_row(name, f"{rate.rows:,}", f"{rate.seconds:.2f}", f"{rate.rows_per_second:,.0f}", f"{processor:.2f}")
    console().print(table)


if __name__ == "__main__":
    _parser = argparse.ArgumentParser(prog="headgate bench spark_publish", description=(__doc__ or "").splitlines()[0])
    add_arguments(_parser)
    sys.exit(run(_parser.parse_args()))
