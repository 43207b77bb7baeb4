"""`headgate sub`: subscribe, and print what is delivered, a line an event, until told to stop.

What a durable subscription hands out is acknowledged when it is printed and written out.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from headgate.protocol.client import OTHERS, Event, begins_in_the_past, parse_start
from headgate.protocol.errors import LocalError
from headgate.protocol.limits import ATTRIBUTE_NAME_LENGTH_MAX
from headgate.protocol.messages import Gap

from ..bookmark import Bookmark
from ..conditions import read_condition
from ..delivery import add_delivery_arguments, add_sharing_argument, delivery_settings
from ..exits import DONE, REFUSED, UsageError
from ..jsonlines import event_text
from ..limits import ACK_SECONDS, DRAIN_SECONDS, FALSE_POSITIVE_TOPICS_SHOWN, WINDOW_EVENTS
from ..lines import Output, descriptor_of
from ..patience import unanswered, unconnected
from ..server import add_server_arguments, connect_client
from ..tables import plain
from ..times import parse_time

if TYPE_CHECKING:
    from headgate.protocol.aio import Client

__all__ = ["Printer", "add_arguments", "human_text", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `sub`."""
    add_server_arguments(parser)
    text = "a topic and all below it; * stands for one level; may be left out where --durable names what there is"
    parser.add_argument("pattern", metavar="PATTERN", nargs="?", default="", help=text)
    parser.add_argument(
        "--where", metavar="SQL", default="", help="a condition on the attributes, as in SQL; @FILE reads it"
    )
    parser.add_argument("--exact", action="store_true", help="only topics with as many levels as PATTERN")
    text = "what gives way when this client does not keep up: drop the oldest; conflate: what has a newer event of its "
    text += "topic, or of its value of ATTR; widen: the same, and DELTA waits for greater moves, up to BAND"
    parser.add_argument("--slow", metavar="drop|conflate[:ATTR]|widen:BAND", help=text)
    text = "a durable subscription: the cluster keeps its place under this name, and what matches waits for it; it is "
    text += "made when there is none, and each event is acknowledged when it is printed"
    parser.add_argument("--durable", metavar="NAME", help=text)
    add_sharing_argument(parser)
    add_delivery_arguments(parser)
    text = "send away the client that has the durable subscription"
    parser.add_argument("--takeover", action="store_true", help=text)
    parser.add_argument(
        "--from",
        metavar="start|now|TIME|PLACES",
        dest="start",
        help="where to begin in a stored stream: its start, now, a time (-10m, or 2026-11-19T06:00, which is local "
        "unless it names a zone), a position in its only log, or positions with commas between (`position` of --json, "
        "as in ann@1763492000:120), each at that event; with any of these, what is missed later on is read from the "
        "logs; a durable subscription begins "
        "there when it is made",
    )
    parser.add_argument("--name", metavar="NAME", help="what `subs` calls this client (default: headgate sub)")
    parser.add_argument("--count", metavar="N", type=int, help="stop after N deliveries")
    parser.add_argument("--timeout", metavar="SECONDS", type=float, help="stop then; with --count unmet the code is 1")
    parser.add_argument("--json", action="store_true", help="an object a delivery")


def run(arguments: argparse.Namespace) -> int:
    """Subscribe and print. SIGINT and SIGTERM are the ordinary end."""
    if arguments.count is not None and arguments.count < 1:
        raise UsageError("--count is at least 1")
    if arguments.timeout is not None and not arguments.timeout > 0:
        raise UsageError("--timeout is a number of seconds above 0")
    if len(arguments.name or "") > ATTRIBUTE_NAME_LENGTH_MAX:
        raise UsageError(f"--name has at most {ATTRIBUTE_NAME_LENGTH_MAX} characters")
    arguments.settings = _settings(arguments)
    arguments.since = None if arguments.start is None else parse_time(arguments.start, time.time())
    arguments.start = "start" if arguments.since is not None else _start(arguments.start)
    if arguments.durable is not None and isinstance(arguments.start, int):
        raise UsageError(f"--from {arguments.start}: for --durable a position names its log, as ann@1763492000:120")
    arguments.where = read_condition(arguments.where)
    arguments.subscribed = False
    return asyncio.run(_run(arguments))


def _settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """What is asked for beside pattern and condition. Raises UsageError for what goes with --durable alone."""
    settings = delivery_settings(arguments)
    if arguments.takeover:
        settings["takeover"] = True
    if arguments.durable is None:
        if settings:
            raise UsageError(f"--{next(iter(settings)).replace('_', '-')} is for durable subscriptions: give --durable")
        if not arguments.pattern:
            raise UsageError("say which topics: a PATTERN, as in quotes or 'quotes/*/OTE'")
        return {}
    if not arguments.durable:
        raise UsageError("--durable wants a name")
    settings["durable"] = arguments.durable
    if arguments.count is not None:
        # What is over the count would be taken from the others for nothing.
        settings["window"] = min(arguments.count, WINDOW_EVENTS)
        settings["limit"] = arguments.count
    return settings


async def _run(arguments: argparse.Namespace) -> int:
    task = asyncio.current_task()
    assert task is not None, "a coroutine runs in a task"
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        async with asyncio.timeout(arguments.timeout):
            await _subscribe(arguments)
    except asyncio.CancelledError:
        return DONE
    except TimeoutError:
        if not arguments.subscribed:
            advice = "it may be looking for its cluster: see `headgate ring`"
            print(f"headgate sub: not subscribed within {arguments.timeout:g} seconds; {advice}", file=sys.stderr)
            return REFUSED
        if arguments.count is None:
            return DONE
        print(
            f"headgate sub: fewer than {arguments.count} deliveries in {arguments.timeout:g} seconds", file=sys.stderr
        )
        return REFUSED
    return DONE


async def _subscribe(arguments: argparse.Namespace) -> None:
    output = Output(descriptor_of(sys.stdout, "standard output"))
    printer = Printer(output, arguments.json, arguments.count, arguments.since)
    async with await connect_client(arguments) as client:
        with unconnected("sub", client):
            await _print_from(client, printer, arguments)


async def _print_from(client: Client, printer: Printer, arguments: argparse.Namespace) -> None:
    with unanswered("sub", client):
        is_durable = arguments.durable is not None
        has_past = not is_durable and arguments.start is not None and await _has_past(client, arguments)
        if arguments.since is not None:
            arguments.start = await _places_at(client, arguments.pattern.partition("/")[0], arguments.since)
        subscription = await client.subscribe(
            arguments.pattern,
            arguments.where or None,
            exact=arguments.exact,
            start=arguments.start,
            on_gap=_tell_gap,
            **arguments.settings,
            **({} if arguments.slow is None else {"slow": arguments.slow}),
        )
    if is_durable:
        printer.acknowledge = subscription.ack_all
    arguments.subscribed = True
    print("subscribed", file=sys.stderr, flush=True)
    try:
        await printer.print_all(subscription.batches())
    except asyncio.CancelledError:
        await _drain(printer, subscription)
        raise
    finally:
        if is_durable:
            await _confirm(subscription)
        if subscription.false_positives:
            _tell_false_positives(subscription.false_positives, subscription.false_positives_by_topic)
        if has_past and (place := printer.bookmark.text(subscription.begins)):
            print(f"to go on behind the last line: --from {plain(place)}", file=sys.stderr, flush=True)


def _tell_false_positives(counts: dict[str, int], by_topic: dict[str, dict[str, int]]) -> None:
    """What filters let through and was not printed, and the topics that most of it came by."""
    text = f"{sum(counts.values())} events were not printed, whose documents XPATH does not match: {_reasons(counts)}"
    lines = [text]
    shown = [topic for topic in by_topic if topic != OTHERS][:FALSE_POSITIVE_TOPICS_SHOWN]
    if len(by_topic) > 1:
        lines += [f"  {plain(topic)}: {_reasons(by_topic[topic])}" for topic in shown]
    rest = sum(sum(found.values()) for topic, found in by_topic.items() if topic not in shown)
    if rest:
        lines.append(f"  other topics: {rest}")
    print("\n".join(lines), file=sys.stderr, flush=True)


def _reasons(counts: dict[str, int]) -> str:
    return ", ".join(
        f"{count} of {why}" if why != "no document" else f"{count} without one" for why, count in counts.items()
    )


async def _has_past(client: Client, arguments: argparse.Namespace) -> bool:
    """Whether the stream is stored; warns the user who asks for the past of one that is not."""
    stream = arguments.pattern.partition("/")[0]
    survey = await client.survey_logs(stream)
    if survey.stored or any(info.first < info.next for info in survey.logs):
        return True
    if begins_in_the_past(arguments.start):
        text = f"stream {plain(stream)} is kept in memory and has no past: what comes from now on is shown; "
        text += f"""`headgate schema put {plain(stream)} '{{"durability": "stored"}}'` keeps what comes after it"""
        print(f"headgate sub: {text}", file=sys.stderr, flush=True)
    return False


async def _places_at(client: Client, stream: str, since: float) -> str:
    """Where that time is in each log that can be had; in others it is found when they come (see Printer)."""
    places = []
    for info in await client.logs(stream):
        position = await client.log_at(info.name, max(0, round(since * 1e6)))
        places.append(f"{info.partition}:{min(position, info.next)}")
    return ",".join(places) or "start"


async def _confirm(subscription: Any) -> None:
    """Wait for the answers to what was acknowledged; says what may come again."""
    is_confirmed = False
    with suppress(TimeoutError):
        async with asyncio.timeout(ACK_SECONDS):
            is_confirmed = await subscription.acked()
    if not is_confirmed:
        text = f"{subscription.stale} acknowledgements came too late: these events come again"
        if not subscription.stale:
            text = f"not every acknowledgement was confirmed within {ACK_SECONDS:g} seconds: some events may come again"
        print(f"headgate sub: {text}, as redelivered", file=sys.stderr, flush=True)


async def _drain(printer: Printer, subscription: Any) -> None:
    """Print what has already come after a stop, if the reader takes it; what can wait for the next client does."""
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            await printer.flush()
            if printer.acknowledge is None:
                await printer.print_all(subscription.batches())
    except TimeoutError:
        return


class Printer:
    """Deliveries as lines, written batch by batch; `count` is how many are wanted, None for all.

    What was read from a log and is older than `since` is left out: a log that came back later was read from its start.
    `acknowledge` is told of the last event of each batch that is written.
    """

    def __init__(self, output: Output, as_json: bool, count: int | None, since: float | None = None) -> None:
        self._output = output
        self._text = event_text if as_json else human_text
        self._wanted = count
        self._since = since
        self._printing: Sequence[Event] = ()
        self.bookmark = Bookmark()
        self.acknowledge: Callable[[Event], Awaitable[object]] | None = None

    async def print_all(self, batches: AsyncIterator[Sequence[Event]]) -> None:
        """Print until there are no more, or enough."""
        if self._wanted == 0:
            return
        async for batch in batches:
            if self._since is not None:
                batch = [event for event in batch if not event.position or event.time >= self._since]
            events = batch if self._wanted is None else batch[: self._wanted]
            if self._wanted is not None:
                self._wanted -= len(events)
            text, self._printing = self._text, events
            await self._output.write("".join([text(event) + "\n" for event in events]))
            await self._passed()
            if self._wanted == 0:
                return

    async def flush(self) -> None:
        """Write what a stop interrupted."""
        await self._output.flush()
        await self._passed()

    async def _passed(self) -> None:
        self.bookmark.passed(self._printing)
        if self.acknowledge is not None and self._printing:
            await self.acknowledge(self._printing[-1])


def human_text(event: Event) -> str:
    """A delivery as one line for people."""
    clock = time.strftime("%H:%M:%S", time.localtime(event.time)) + f".{int(event.time * 1000) % 1000:03}"
    attributes = "".join(f" {plain(name)}={_value(value)}" for name, value in event.attributes.items())
    body = f" | {_body(event)}" if event.body else ""
    again = f" (handed out {event.delivery_count} times)" if event.redelivered else ""
    return f"{clock} {plain(event.topic)}{attributes}{body}{again}"


def _value(value: object) -> str:
    """An attribute as `pub --attr` would take it, but for the quotes that a string with a number in it needs."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return plain(value) if isinstance(value, str) else repr(value)


def _body(event: Event) -> str:
    try:
        return plain(event.body.decode())
    except UnicodeDecodeError:
        return f"<{len(event.body)} bytes>"


def _start(text: str | None) -> str | int | None:
    if text is None or text in ("start", "now"):
        return text
    if text.isascii() and text.isdigit() and len(text) < 17:
        return int(text)
    try:
        parse_start(text)
    except LocalError as error:
        raise UsageError(f"--from {text}: {error}; or a time, as in -10m or 2026-11-19T06:00") from error
    return text


def _tell_gap(gap: Gap) -> None:
    what = "deliveries on this connection" if gap.subscription == 0 else "deliveries"
    number = f"{gap.count} {what} lost" if gap.count else f"{what} may have been lost"
    print(f"gap: {number} ({plain(gap.reason)})", file=sys.stderr, flush=True)
