"""The rules of the house as one test: who may import whom, and what is banned.

The tables are here, the rules in `tests/support/tidy.py`. How long a file or a function is, is judged by reading.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import pytest

from tests.support import tidy
from tests.support.tidy import Room

ROOT = Path(__file__).resolve().parent.parent
CODE = ("broker", "protocol", "matching", "ops", "headgate/__init__.py", "pyspark_headgate.py")
FOLDERS = {"headgate", "broker", "protocol", "matching", "ops", "docker", "tests"}

TASK_OWNERS = {"protocol/aio/tasks.py"}
"""The files that may start asyncio tasks, because they hold them until they end."""

STANDARD = frozenset(sys.stdlib_module_names)
PURE = frozenset(
    {"__future__", "abc", "bisect", "collections", "dataclasses", "enum", "fractions", "functools", "hashlib", "heapq"}
    | {"itertools", "math", "operator", "re", "struct", "typing"}
)
WORLDS = frozenset({"headgate.protocol.aio", "headgate.protocol.blocking", "headgate.protocol.spark"})
REAL_TIME = frozenset(
    {"asyncio", "datetime", "multiprocessing", "secrets", "select", "selectors", "socket", "threading", "time", "uuid"}
)

ROOMS: dict[str, Room] = {
    "matching": Room(PURE | {"headgate.matching"}),
    "matching/dynamic/nearest.py": Room(PURE | {"headgate.matching", "array.array"}),
    "matching/language/parser.py": Room(PURE | {"headgate.matching", "lark"}),
    "protocol": Room(PURE | {"headgate.protocol", "msgpack", "array", "io.BytesIO", "sys"}, WORLDS),
    "protocol/structure": Room(PURE | {"headgate.protocol", "json"}, WORLDS, frozenset({"lxml", "xml"})),
    "protocol/security.py": Room(PURE | {"headgate.protocol", "os", "ssl"}, WORLDS),
    "protocol/client/telling.py": Room(PURE | {"headgate.protocol", "logging", "inspect"}, WORLDS),
    "protocol/client/forking.py": Room(PURE | {"headgate.protocol", "os", "weakref"}, WORLDS),
    "protocol/aio": Room(STANDARD | {"headgate.protocol"}, WORLDS - {"headgate.protocol.aio"}),
    "protocol/blocking": Room(STANDARD | {"headgate.protocol"}, WORLDS - {"headgate.protocol.blocking"} | {"asyncio"}),
    "protocol/spark": Room(
        STANDARD | {"headgate.protocol", "msgpack"},
        frozenset({"headgate.protocol.aio", "asyncio"}),
        frozenset({"pyspark", "pyarrow", "pandas", "numpy"}),
    ),
    # What Spark calls derives from its classes.
    **dict.fromkeys(
        [
            f"protocol/spark/{name}.py"
            for name in ("batch_reader", "batch_writer", "state_reader", "stream_reader", "stream_writer")
        ],
        Room(
            STANDARD | {"headgate.protocol", "pyspark.sql.datasource", "pyspark.sql.streaming.datasource"},
            frozenset({"headgate.protocol.aio", "asyncio"}),
            frozenset({"pyspark", "pyarrow", "pandas", "numpy"}),
        ),
    ),
    "broker": Room(PURE | {"headgate.broker"}, frozenset({"headgate.broker.simulator", "headgate.broker.daemon"})),
    "broker/__main__.py": Room(PURE | {"headgate.broker", "sys"}, frozenset({"headgate.broker.simulator"})),
    "broker/core": Room(
        PURE
        | {
            "headgate.broker.core",
            "headgate.matching",
            "headgate.protocol.messages",
            "headgate.protocol.errors",
            "headgate.protocol.data",
            "headgate.protocol.limits",
        }
        | {"array.array"}
        | {"random.Random"}  # as the type of what the host hands in; calling it is banned below
    ),
    "broker/simulator": Room(
        STANDARD | {"headgate.broker.core", "headgate.broker.simulator", "headgate.matching", "headgate.protocol"},
        REAL_TIME | WORLDS,
    ),
    # Runs that know nothing of each other, in several processes.
    "broker/simulator/scenarios/campaign.py": Room(
        PURE | {"headgate.broker.simulator", "os", "concurrent.futures", "multiprocessing"}, frozenset()
    ),
    "broker/daemon": Room(
        STANDARD
        | {"headgate.broker.core", "headgate.broker.daemon", "headgate.protocol"}
        | {"uvloop", "structlog", "prometheus_client", "pydantic", "pydantic_settings", "aiohttp"},
        WORLDS - {"headgate.protocol.aio"},
        frozenset({"cryptography", "jwt"}),
    ),
    "headgate": Room(PURE | {"headgate.protocol"}),
    "pyspark_headgate.py": Room(PURE | {"pyspark.sql.datasource"}, frozenset(), frozenset({"headgate.protocol"})),
}
"""Folder or file -> what it may import. The longest entry that fits decides; `ops` and tests may all."""

HOUSES = frozenset(
    {"headgate", "headgate.broker", "headgate.broker.core", "headgate.broker.simulator", "headgate.matching"}
    | {"headgate.protocol", "headgate.protocol.spark", "headgate.ops", "headgate.ops.bench"}
)
"""Packages that are no room: anybody may import the modules at their root. Every other package is a room."""

FLOORS: dict[str, tuple[str, ...]] = {
    "broker/core": (
        *("keyspace", "rights", "membership", "delivery", "links", "kv"),
        *("cluster", "placement", "log", "forwarding", "durable", "clients"),
    ),
    "matching": ("structure", "topics", "language", "index", "dynamic"),
    "protocol": ("data", "structure", "wire", "client", "aio", "blocking"),
    "broker/simulator": ("engine", "workloads", "checkers", "faults", "scenarios"),
}
"""House -> its rooms from the ground up: a room imports only from rooms that stand before it."""


@cache
def source(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@cache
def parsed(path: str) -> ast.Module:
    return ast.parse(source(path), filename=path)


def code_files() -> list[str]:
    return list(tidy.python_files(ROOT, CODE))


def all_files() -> list[str]:
    return [*code_files(), *tidy.python_files(ROOT, ["tests"])]


def room_of(path: str) -> Room | None:
    fitting = [name for name in ROOMS if path == name or path.startswith(f"{name}/")]
    return ROOMS[max(fitting, key=len)] if fitting else None


def below(paths: list[str], *folders: str) -> list[str]:
    return [path for path in paths if path.startswith(folders)]


def none_of(complaints: Iterator[str]) -> None:
    found = list(complaints)
    if found:
        pytest.fail("\n".join(["the rules of the house (CONTRIBUTING.md):", *found]), pytrace=False)


def over(paths: list[str], rule: Callable[[str, ast.AST], Iterator[str]]) -> Iterator[str]:
    for path in paths:
        yield from rule(path, parsed(path))


# --- The project keeps the rules -------------------------------------------------------------------------------------


def test_there_is_something_to_check() -> None:
    for folder in ("broker/core", "broker/daemon", "broker/simulator", "matching", "protocol", "ops"):
        assert below(code_files(), f"{folder}/"), f"no Python file below {folder}: has the room moved?"


def test_each_folder_imports_only_what_its_room_allows() -> None:
    rooms = [(path, room_of(path)) for path in code_files()]
    none_of(line for path, room in rooms if room for line in tidy.import_complaints(path, parsed(path), room))


def test_rooms_are_entered_through_their_faces() -> None:
    packages = {tidy.dotted_package(path) for path in code_files() if path.endswith("__init__.py")}
    assert packages > HOUSES
    none_of(over(code_files(), partial(tidy.face_complaints, packages - HOUSES)))


def test_rooms_import_downward() -> None:
    for house, floors in FLOORS.items():
        none_of(over(below(code_files(), f"{house}/"), partial(tidy.floor_complaints, house, floors)))


def test_every_python_folder_is_a_package_and_docker_is_none() -> None:
    none_of(tidy.package_complaints(all_files(), list(tidy.python_files(ROOT, ["docker"]))))


def test_the_top_level_folders_are_fixed() -> None:
    found = {path.split("/")[0] for path in (one.relative_to(ROOT).as_posix() for one in ROOT.glob("*/*.py"))}
    assert found <= FOLDERS | {"build"}, f"{sorted(found - FOLDERS)}: every file belongs in one of {sorted(FOLDERS)}"


def test_no_error_is_swallowed() -> None:
    none_of(over(all_files(), tidy.swallowing_complaints))


def test_tasks_have_one_owner() -> None:
    none_of(over([path for path in code_files() if path not in TASK_OWNERS], tidy.task_complaints))


def test_no_test_sleeps() -> None:
    tests = [path for path in all_files() if path.startswith("tests/") and not path.startswith("tests/system/")]
    none_of(over(tests, tidy.sleep_complaints))


def test_only_the_command_line_prints() -> None:
    silent = [path for path in code_files() if not path.startswith("ops/") and not path.endswith("/__main__.py")]
    none_of(over(silent, tidy.print_complaints))


def test_no_set_gives_its_order_to_anything() -> None:
    none_of(over(below(code_files(), "broker/core/", "broker/simulator/", "matching/"), tidy.set_order_complaints))


def test_the_pure_folders_never_wait_and_make_no_randomness() -> None:
    pure = [path for path in below(code_files(), "broker/core/", "matching/", "protocol/") if path.count("/") == 1]
    none_of(over([*pure, *below(code_files(), "broker/core/")], tidy.asynchronous_complaints))
    none_of(over(below(code_files(), "broker/core/"), tidy.randomness_complaints))


def test_texts_hold_no_unfinished_work_and_no_address_of_a_machine() -> None:
    paths = list(tidy.text_files(ROOT, sorted(FOLDERS)))
    assert "pyproject.toml" in paths
    none_of(line for path in paths for line in tidy.text_complaints(path, source(path)))


# --- And each rule bites ---------------------------------------------------------------------------------------------


def tree(text: str) -> ast.Module:
    return ast.parse(text)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("matching/index/index.py", "import headgate.broker"),
        ("matching/index/index.py", "from headgate.protocol.data import Batch"),
        ("matching/index/index.py", "import lark"),
        ("matching/index/index.py", "import time"),
        ("matching/index/index.py", "import collections, os"),
        ("matching/index/index.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import numpy"),
        ("matching/index/index.py", "def late():\n    from . import language, os\n    import random"),
        ("matching/index/index.py", "os = __import__('os')"),
        ("matching/language/parser.py", "import msgpack"),
        ("protocol/wire/codec.py", "import asyncio"),
        ("protocol/wire/codec.py", "from time import monotonic"),
        ("protocol/wire/codec.py", "from ..aio import client"),
        ("protocol/wire/codec.py", "from .. import blocking"),
        ("protocol/wire/codec.py", "from headgate.matching import values"),
        ("protocol/aio/client.py", "from ..blocking.client import Client"),
        ("protocol/aio/client.py", "import headgate.matching"),
        ("protocol/blocking/client.py", "import asyncio"),
        ("protocol/spark/source.py", "import pyspark"),
        ("protocol/spark/source.py", "from ..aio import client"),
        ("protocol/spark/batch_reader.py", "import pyspark"),
        ("pyspark_headgate.py", "from headgate.protocol import Batch"),
        ("broker/core/node.py", "import random"),
        ("broker/core/node.py", "from random import choice"),
        ("broker/core/node.py", "import msgpack"),
        ("broker/core/node.py", "from ..daemon import driver"),
        ("broker/core/node.py", "from headgate.protocol.wire.codec import encode"),
        ("broker/core/node.py", "import headgate.protocol"),
        ("broker/core/node.py", "import logging"),
        ("broker/simulator/engine/world.py", "import asyncio"),
        ("broker/simulator/engine/world.py", "from time import time"),
        ("broker/simulator/engine/world.py", "from ...daemon.driver import Driver"),
        ("broker/simulator/engine/world.py", "import numpy"),
        ("broker/daemon/driver.py", "from headgate.broker.simulator import world"),
        ("broker/daemon/driver.py", "import headgate.ops.cli"),
        ("broker/daemon/driver.py", "import requests"),
        ("headgate/__init__.py", "import headgate.broker"),
    ],
)
def test_an_import_out_of_its_room_is_refused(path: str, text: str) -> None:
    room = room_of(path)
    assert room is not None
    assert list(tidy.import_complaints(path, tree(text), room))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("matching/language/parser.py", "import lark\nfrom lark.lexer import Token\nfrom .tree import Node"),
        ("matching/index/index.py", "from __future__ import annotations\nfrom collections.abc import Iterable"),
        ("protocol/wire/codec.py", "import msgpack, array, sys\nfrom .messages import Publish"),
        ("protocol/aio/client.py", "import asyncio\nfrom ..messages import Publish\nfrom .tasks import TaskSet"),
        ("protocol/spark/source.py", "def schema():\n    import pyspark\nfrom ..blocking import client"),
        ("protocol/spark/batch_reader.py", "from pyspark.sql.datasource import InputPartition"),
        (
            "broker/core/node.py",
            "from random import Random\nfrom headgate.matching import Index\nfrom .membership import Ring",
        ),
        (
            "broker/core/node.py",
            "from headgate.protocol.messages import Publish\nfrom headgate.protocol.data import Batch",
        ),
        (
            "broker/simulator/engine/world.py",
            "import random\nfrom ..core.node import Node\nfrom headgate.protocol import codec",
        ),
        ("broker/daemon/driver.py", "import asyncio, uvloop\nfrom headgate.protocol.aio import connection"),
        ("headgate/__init__.py", "from headgate.protocol.aio.client import connect"),
    ],
)
def test_an_import_within_its_room_is_fine(path: str, text: str) -> None:
    room = room_of(path)
    assert room is not None
    assert list(tidy.import_complaints(path, tree(text), room)) == []


@pytest.mark.parametrize(
    ("path", "text", "bites"),
    [
        ("broker/core/log/log.py", "from ..kv.store import Keyed", True),
        ("broker/core/node.py", "from .kv.store import Keyed", True),
        ("ops/cli.py", "def late():\n    from headgate.broker.core.kv.store import Keyed", True),
        ("broker/core/node.py", "from .kv import Keyed", False),
        ("broker/core/kv/store.py", "from .items import Items", False),
        ("broker/core/kv/store.py", "from ..effects import Send", False),
    ],
)
def test_a_way_round_a_face_is_found(path: str, text: str, bites: bool) -> None:
    rooms = {"headgate.broker.core.kv", "headgate.broker.core.log"}
    assert bool(list(tidy.face_complaints(rooms, path, tree(text)))) == bites


@pytest.mark.parametrize(
    ("path", "text", "bites"),
    [
        ("broker/core/kv/store.py", "from ..log import Log", True),
        ("broker/core/kv/store.py", "from .. import log", True),
        ("broker/core/log/log.py", "from ..kv import Keyed", False),
        ("broker/core/log/log.py", "from .leader import Leader", False),
        ("broker/core/node.py", "from .log import Log", False),
    ],
)
def test_an_import_upward_is_found(path: str, text: str, bites: bool) -> None:
    assert bool(list(tidy.floor_complaints("broker/core", ("kv", "log"), path, tree(text)))) == bites


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (tidy.swallowing_complaints, "try:\n    a()\nexcept:\n    b()"),
        (tidy.swallowing_complaints, "try:\n    a()\nexcept Exception:\n    pass"),
        (tidy.swallowing_complaints, "try:\n    a()\nexcept (ValueError, BaseException):\n    ..."),
        (tidy.task_complaints, "loop.create_task(work())"),
        (tidy.task_complaints, "asyncio.ensure_future(work())"),
        (tidy.sleep_complaints, "time.sleep(1)"),
        (tidy.sleep_complaints, "from time import sleep\nsleep(0.1)"),
        (tidy.sleep_complaints, "await asyncio.sleep(seconds)"),
        (tidy.print_complaints, "print('here')"),
        (tidy.set_order_complaints, "for a in {1, 2}:\n    pass"),
        (tidy.set_order_complaints, "for a in set(b):\n    pass"),
        (tidy.set_order_complaints, "[a for a in frozenset(b)]"),
        (tidy.set_order_complaints, "a = list({b for b in c})"),
        (tidy.set_order_complaints, "', '.join(set(b))"),
        (tidy.asynchronous_complaints, "async def a():\n    pass"),
        (tidy.randomness_complaints, "a = Random(7)"),
    ],
)
def test_a_banned_form_is_found(rule: Callable[[str, ast.AST], Iterator[str]], text: str) -> None:
    assert len(list(rule("some/file.py", tree(text)))) == 1


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (tidy.swallowing_complaints, "try:\n    a()\nexcept OSError:\n    pass"),
        (tidy.swallowing_complaints, "try:\n    a()\nexcept Exception as error:\n    note(error)"),
        (tidy.sleep_complaints, "await asyncio.sleep(0)"),
        (tidy.print_complaints, "self.print('a column')"),
        (tidy.set_order_complaints, "for a in sorted({1, 2}):\n    b = len(set(c)) + sum(set(c))"),
        (tidy.randomness_complaints, "def draw(randomness: Random) -> int:\n    return randomness.randrange(4)"),
    ],
)
def test_a_form_near_a_banned_one_is_fine(rule: Callable[[str, ast.AST], Iterator[str]], text: str) -> None:
    assert list(rule("some/file.py", tree(text))) == []


# Joined from pieces, because this file is read by the rule as well.
@pytest.mark.parametrize(
    "line",
    [
        *("# TO" + "DO later", "FIX" + "ME", "/ho" + "me/ann/data", "see /ro" + "ot/x", "(/wo" + "rk/main)"),
        *("C:" + "\\Users\\ann", "--index" + "-url x", "https://py" + "pi.org/simple", "x @ fi" + "le:///a"),
        *("See the head of " + "this file.", "Asserts what must " + "always hold.", "DESI" + "GN 5"),
    ],
)
def test_a_banned_text_is_found(line: str) -> None:
    assert len(list(tidy.text_complaints("some/file.md", f"fine\n{line}\n"))) == 1


@pytest.mark.parametrize("line", ["the workload", "quotes/work/OTE", "homework", "XPATH '/bib/book'", "ops/work/x.py"])
def test_a_text_near_a_banned_one_is_fine(line: str) -> None:
    assert list(tidy.text_complaints("some/file.md", line)) == []


def test_a_folder_without_init_and_a_docker_with_one_are_found() -> None:
    assert len(list(tidy.package_complaints(["broker/core/node.py", "broker/__init__.py"], []))) == 1
    assert len(list(tidy.package_complaints([], ["docker/__init__.py"]))) == 1
    assert list(tidy.package_complaints(["broker/__init__.py", "pyspark_headgate.py"], ["docker/healthy.py"])) == []
