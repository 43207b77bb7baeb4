"""The documents know the code: every verb, setting, metric and message is explained where its user looks for it."""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Collection, Iterable
from pathlib import Path

import pytest

from tests.support import house_map, tidy

ROOT = Path(__file__).resolve().parent.parent
CODE = ("broker", "protocol", "matching", "ops", "headgate", "pyspark_headgate.py")


def document(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def code_in(text: str) -> str:
    """What a Markdown text sets as code, in fences or between backticks: `status` in a sentence explains nothing."""
    fences = re.findall(r"^```[^\n]*\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    without_fences = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return "\n".join([*fences, *re.findall(r"`([^`\n]+)`", without_fences)])


def absent(names: Iterable[str], text: str) -> list[str]:
    """The names that do not occur in the text as whole words."""
    return [name for name in names if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)]


def verbs(parser: argparse.ArgumentParser) -> list[str]:
    """The verbs of a command line."""
    return [
        verb for action in parser._actions if isinstance(action, argparse._SubParsersAction) for verb in action.choices
    ]


def spellings(class_name: str) -> list[str]:
    """How a specification may write a message: SubscribeAck, SUBSCRIBE_ACK, SUBSCRIBEACK."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", class_name)
    return [class_name, snake.upper(), class_name.upper()]


def test_every_verb_is_in_the_readme() -> None:
    from headgate.ops.cli import build_parser

    found = verbs(build_parser())
    assert "serve" in found
    missing = absent(found, code_in(document("README.md")))
    assert not missing, f"README.md shows no `headgate {missing[0]}`: add a line for each of {missing}"


def test_every_setting_is_in_the_runbook() -> None:
    from headgate.broker.daemon import Settings

    prefix = str(Settings.model_config.get("env_prefix", ""))
    names = [f"{prefix}{name}".upper() for name in Settings.model_fields]
    assert names
    assert all(name.startswith("HEADGATE_") for name in names)
    missing = absent(names, document("ops/RUNBOOK.md"))
    assert not missing, f"ops/RUNBOOK.md does not explain the settings {missing}: say what each does and its default"


def test_every_metric_is_in_the_runbook() -> None:
    from headgate.broker.daemon.metrics import METRICS

    assert METRICS
    missing = absent(METRICS, document("ops/RUNBOOK.md"))
    assert not missing, f"ops/RUNBOOK.md does not explain the metrics {missing}: say what each counts and when to worry"


def test_every_message_is_in_the_specification() -> None:
    from headgate.protocol.messages import MESSAGE_TYPES

    assert MESSAGE_TYPES
    text = document("protocol/SPEC.md")
    missing = [
        f"{kind.__name__} ({code})"
        for code, kind in MESSAGE_TYPES.items()
        if len(absent(spellings(kind.__name__), text)) == len(spellings(kind.__name__))
    ]
    assert not missing, f"protocol/SPEC.md does not define {missing}: give each its fields, bytes and a test vector"


def test_a_name_counts_only_as_a_whole_word() -> None:
    assert absent(["sub", "HEADGATE_DATA"], "subscribe HEADGATE_DATA_DIR sub-list") == ["sub", "HEADGATE_DATA"]
    assert absent(["sub", "HEADGATE_DATA"], "`headgate sub` reads HEADGATE_DATA.") == []


def test_a_verb_in_plain_prose_does_not_count() -> None:
    text = "the status of a bench\n\n```sh\nheadgate serve\n```\n\nand `headgate pub TOPIC`\n"
    assert absent(["serve", "pub"], code_in(text)) == []
    assert absent(["status", "bench"], code_in(text)) == ["status", "bench"]


@pytest.mark.parametrize("spelling", ["SubscribeAck", "SUBSCRIBE_ACK", "SUBSCRIBEACK"])
def test_a_message_may_be_spelt_as_specifications_do(spelling: str) -> None:
    assert spelling in spellings("SubscribeAck")


def test_the_verbs_of_a_command_line_are_found() -> None:
    parser = argparse.ArgumentParser()
    subparsers = parser.add_subparsers()
    subparsers.add_parser("serve")
    subparsers.add_parser("pub")
    assert verbs(parser) == ["serve", "pub"]


def test_architecture_is_drawn_from_the_code() -> None:
    page = document("ARCHITECTURE.md")
    assert page == house_map.drawn(page), "ARCHITECTURE.md: run `python -m tests.support.house_map`"
    for name, text in house_map.parts():
        assert f"<!-- {name} -->\n\n{text}\n<!-- /{name} -->" in page


def test_what_brokers_say_is_drawn_from_the_declarations() -> None:
    page = document("protocol/SPEC.md")
    assert page == house_map.drawn(page, house_map.spoken), "SPEC.md: run `python -m tests.support.house_map`"
    for name, text in house_map.spoken():
        assert f"<!-- {name} -->\n\n{text}\n<!-- /{name} -->" in page


def test_architecture_names_files_that_there_are() -> None:
    rooted = r"`((?:broker|matching|ops|protocol|tests|docker)/[\w/.-]+)`"
    missing = sorted({path for path in re.findall(rooted, document("ARCHITECTURE.md")) if not (ROOT / path).exists()})
    assert not missing, f"ARCHITECTURE.md names {missing}, which there are not"


def dead_files(path: str, source: str, files: Collection[str]) -> list[str]:
    """Files that a file names, as `x.py` at the root or beside it, or with a folder, and that there are not."""
    beside = path.rpartition("/")[0]
    return [
        name
        for name in re.findall(r"`([\w./-]*\w\.py)`", source)
        if name not in files
        and f"{beside}/{name}" not in files
        and not ("/" in name and any(one.endswith(f"/{name}") for one in files))
    ]


def unknown_steps(manual: str, known: Iterable[str]) -> list[str]:
    """Words in the order of reading of a face that are neither files, folders nor classes of its room."""
    orders = re.findall(r"Order of reading[:,](.*?)(?:\n\n|\Z)", manual, flags=re.DOTALL)
    return [word for order in orders for word in re.findall(r"`([^`]+)`", order) if word not in set(known)]


def known_in(room: Path) -> set[str]:
    """Files, folders and classes of a room."""
    sources = [file.read_text(encoding="utf-8") for file in room.glob("*.py")]
    classes = {name for source in sources for name in re.findall(r"^class (\w+)", source, flags=re.MULTILINE)}
    return classes | {one.name.removesuffix(".py") for one in room.iterdir()} | {one.name for one in room.glob("*.md")}


def test_the_code_names_files_that_there_are() -> None:
    files = {*tidy.python_files(ROOT, [*CODE, "tests", "docker"])}
    dead = {path: dead_files(path, document(path), files) for path in tidy.python_files(ROOT, CODE)}
    assert len(dead) > 300
    assert not any(dead.values()), {path: names for path, names in dead.items() if names}


def test_orders_of_reading_name_what_is_in_the_room() -> None:
    faces = [ROOT / path for path in tidy.python_files(ROOT, CODE) if path.endswith("__init__.py")]
    manuals = {face.parent: ast.get_docstring(ast.parse(face.read_text(encoding="utf-8"))) or "" for face in faces}
    assert sum("Order of reading" in manual for manual in manuals.values()) >= 15
    unknown = {str(room): unknown_steps(manual, known_in(room)) for room, manual in manuals.items()}
    assert not any(unknown.values()), {room: words for room, words in unknown.items() if words}


def test_a_file_that_went_is_found() -> None:
    files = ["setup.py", "a/b/c.py", "a/b/d.py", "a/e/f.py"]
    source = '"""See `d.py`, `e/f.py`, `b/c.py`; and `f.py`, `gone.py`."""\n# and `x/c.py`, `setup.py`\n'
    assert dead_files("a/b/c.py", source, files) == ["f.py", "gone.py", "x/c.py"]
    assert unknown_steps("Does x.\n\nOrder of reading: `one` (`Two`), then\n`three`.\n\n`four`", ["one", "Two"]) == [
        "three"
    ]


def unknown_names(text: str, source: str) -> list[str]:
    """Classes, and methods of classes, that a document sets as code and that the source does not define."""
    found = []
    for name, member in re.findall(r"`([A-Z]\w*[a-z]\w*)(?:\.(\w+))?`", text):
        body = re.search(rf"^(?:class {name}\b.*?|{name}\b.*?)(?=^\S|\Z)", source, flags=re.MULTILINE | re.DOTALL)
        if body is None or (member and not re.search(rf"\b{member}\b", body[0])):
            found.append(f"{name}.{member}" if member else name)
    return found


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_documents_name_classes_and_methods_that_there_are(page: str) -> None:
    source = "\n".join(document(path) for path in tidy.python_files(ROOT, CODE))
    text = document(page)
    assert len(unknown_names(text, "")) > 5, "there is something to check"
    assert not unknown_names(text, source)


def test_a_class_that_was_renamed_is_found() -> None:
    source = "class Node:\n    def handle(self):\n        pass\n\n\nclass Other:\n    pass\n"
    assert unknown_names("`Node` `Node.handle` `NODE` `node`", source) == []
    assert unknown_names("`Nodes` `Other.handle`", source) == ["Nodes", "Other.handle"]
