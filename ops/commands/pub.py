"""`headgate pub`: publish one event, or one for each line of a file or of a pipe, as the lines come."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Protocol

from headgate.protocol.data import Scalar
from headgate.protocol.errors import HeadgateError, LocalError

from ..attributes import parse_attributes
from ..bodies import check_body, read_file
from ..exits import DONE, SKIPPED, UsageError
from ..jsonlines import parse_line
from ..limits import PATIENCE_SECONDS
from ..lines import descriptor_of, read_lines
from ..patience import Patience, unanswered, unconnected
from ..server import add_server_arguments, connect_client

__all__ = ["Publishing", "add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `pub`."""
    add_server_arguments(parser)
    parser.add_argument(
        "topic", metavar="TOPIC", nargs="?", default="", help="levels joined by /, like quotes/NYSE/OTE"
    )
    parser.add_argument(
        "--attr",
        metavar="K=V",
        action="extend",
        nargs="+",
        default=[],
        help='an attribute, or several; true, false, null and numbers are typed, k="7" is a string',
    )
    body = parser.add_mutually_exclusive_group()
    body.add_argument("--body", metavar="TEXT", help="the body (default: empty)")
    body.add_argument("--body-file", metavar="FILE", help="the body is what is in this file; - reads standard input")
    parser.add_argument(
        "--content-type",
        metavar="TYPE",
        default="",
        help="what the body is; of application/xml and application/json, which files named .xml and .json are unless "
        "said, XPATH can ask the structure",
    )
    parser.add_argument(
        "--jsonl",
        metavar="FILE",
        help='an event a line: {"topic","attrs","body"|"body_base64"|"xml"|"json"}, or a line of `sub --json`; '
        "- reads standard input. "
        "TOPIC and --attr then stand in for what a line leaves out",
    )
    parser.add_argument(
        "--skip-bad", action="store_true", help="pass over bad lines, name and count them; the code is 4"
    )
    parser.add_argument(
        "--keep-going",
        action="store_true",
        help="go on after a refused event or an unknown outcome, as when a broker died; the code is 1 at the end",
    )
    parser.add_argument("--mode", choices=("fire", "accepted", "stored"), default="accepted", help="what to wait for")
    parser.add_argument("-q", "--quiet", action="store_true", help="no summary on standard error")


def run(arguments: argparse.Namespace) -> int:
    """Publish."""
    if not arguments.topic and arguments.attr and "=" not in arguments.attr[-1]:
        arguments.topic = arguments.attr.pop()  # `pub --attr price=8.45 quotes`: the last word is no attribute
    attributes = parse_attributes(arguments.attr)
    if arguments.jsonl is None:
        if not arguments.topic:
            raise UsageError("name a TOPIC, or a file of JSON lines with --jsonl")
        if arguments.skip_bad or arguments.keep_going:
            raise UsageError("--skip-bad and --keep-going are about the lines of --jsonl")
        return asyncio.run(_publish_one(arguments, attributes))
    for option in ("body", "body_file", "content_type"):
        if getattr(arguments, option):
            raise UsageError(f"with --jsonl each line has its own body: leave --{option.replace('_', '-')} out")
    descriptor = _open(arguments.jsonl)
    try:
        return asyncio.run(_publish_lines(arguments, attributes, descriptor))
    finally:
        if arguments.jsonl != "-":
            os.close(descriptor)


async def _publish_one(arguments: argparse.Namespace, attributes: dict[str, Scalar]) -> int:
    body: str | bytes = arguments.body or b""
    content_type = arguments.content_type
    if arguments.body_file is not None:
        body, content_type = read_file(arguments.body_file, content_type)
    found = check_body(body.encode("utf-8", "surrogateescape") if isinstance(body, str) else body, content_type)
    attributes = {**attributes, **found}
    async with await connect_client(arguments) as client:
        with _hindrances(client), unconnected("pub", client), unanswered("pub", client):
            await client.publish(arguments.topic, attributes, body, content_type=content_type, mode=arguments.mode)
    _say(arguments, "published 1 event")
    return DONE


async def _publish_lines(arguments: argparse.Namespace, attributes: dict[str, Scalar], descriptor: int) -> int:
    name = "standard input" if arguments.jsonl == "-" else arguments.jsonl
    async with await connect_client(arguments) as client:
        publishing = Publishing(client, name, arguments.topic, attributes, arguments.mode, arguments.skip_bad)
        publishing.keep_going = arguments.keep_going
        with _hindrances(client), unconnected("pub", client):
            try:
                await publishing.publish(read_lines(descriptor))
            finally:
                try:
                    await client.flush()
                finally:
                    _say(arguments, publishing.summary())
    return SKIPPED if publishing.skipped else DONE


class Publisher(Protocol):
    """The part of a client that is used here."""

    @property
    def failure_count(self) -> int: ...

    @property
    def failures(self) -> Sequence[HeadgateError]: ...

    async def ready(self) -> None: ...

    def publish_soon(
        self, topic: str, attributes: Mapping[str, Any] | None, body: bytes, *, content_type: str, mode: str
    ) -> object: ...


class Publishing:
    """Publishes lines. It stops at the first bad line, unless told to skip them."""

    def __init__(
        self,
        client: Publisher,
        name: str,
        topic: str = "",
        attributes: Mapping[str, Scalar] | None = None,
        mode: str = "accepted",
        skip_bad: bool = False,
    ) -> None:
        self._client = client
        self._name = name
        self._topic = topic
        self._attributes = attributes
        self._mode = mode
        self._skip_bad = skip_bad
        self._number = 0
        self._told = 0
        self.keep_going = False
        self.sent = 0
        self.skipped = 0

    async def publish(self, chunks: AsyncIterator[list[bytes]]) -> None:
        """Publish what comes until it ends or the broker refuses something. Raises UsageError at a bad line."""
        async for lines in chunks:
            for line in lines:
                self._number += 1
                if line and not line.isspace():
                    await self._client.ready()
                    self._publish_line(line)
            # Let the connection have its turn, however fast lines come.
            await asyncio.sleep(0)
            if self._client.failure_count > self._told:
                if not self.keep_going:
                    return
                self._tell_failures()

    def summary(self) -> str:
        """One line that says how many events were published, and how many lines skipped."""
        count = max(0, self.sent - self._client.failure_count)
        text = f"published {count} event{'s' * (count != 1)}"
        return f"{text}, skipped {self.skipped} bad line{'s' * (self.skipped != 1)}" if self.skipped else text

    def _tell_failures(self) -> None:
        count = self._client.failure_count - self._told
        self._told += count
        print(f"headgate pub: {count} not published for certain: {self._client.failures[-1]}", file=sys.stderr)

    def _publish_line(self, line: bytes) -> None:
        try:
            event = parse_line(line, self._topic, self._attributes)
            self._client.publish_soon(
                event.topic, event.attributes, event.body, content_type=event.content_type, mode=self._mode
            )
            self.sent += 1
        except (UsageError, LocalError) as error:
            text = f"{self._name}, line {self._number}: {error}"
            if not self._skip_bad:
                raise UsageError(text) from error
            self.skipped += 1
            print(f"headgate pub: {text}", file=sys.stderr)


def _hindrances(client: Any) -> Patience:
    """Tells the user why stored events are not acknowledged yet."""
    return Patience("pub", lambda: str(client.hindrance or ""), PATIENCE_SECONDS)


def _open(name: str) -> int:
    if name == "-":
        return descriptor_of(sys.stdin, "standard input")
    try:
        return os.open(name, os.O_RDONLY)
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from error


def _say(arguments: argparse.Namespace, text: str) -> None:
    if not arguments.quiet:
        print(text, file=sys.stderr)
