"""The rules of style as functions: each takes a file's path and syntax tree and yields complaints.

A complaint is one line that says where, what, and what to do instead. The functions know no file of this project;
`tests/test_tidy.py` holds the tables, applies the rules to every file, and shows with small offending sources that
each rule bites.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = [
    "Room",
    "asynchronous_complaints",
    "dotted_package",
    "face_complaints",
    "floor_complaints",
    "import_complaints",
    "imported_names",
    "package_complaints",
    "print_complaints",
    "python_files",
    "randomness_complaints",
    "set_order_complaints",
    "sleep_complaints",
    "swallowing_complaints",
    "task_complaints",
    "text_complaints",
    "text_files",
]

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Room:
    """What the files of one folder may import: dotted prefixes, and exceptions to them."""

    allowed: frozenset[str]
    denied: frozenset[str] = field(default_factory=frozenset)
    lazy: frozenset[str] = field(default_factory=frozenset)
    """Prefixes allowed inside functions only: importing the module must not need them."""

    def admits(self, name: str, inside_function: bool) -> bool:
        """Whether a file of this room may import `name`, given dotted and whole."""
        prefixes = {name[: match.start()] for match in re.finditer(r"\.", name)} | {name}
        if prefixes & self.denied:
            return False
        return bool(prefixes & self.allowed) or (inside_function and bool(prefixes & self.lazy))


def imported_names(path: str, tree: ast.AST) -> Iterator[tuple[int, str, bool]]:
    """Every import as (line, whole dotted name, inside a function?); those under TYPE_CHECKING count as well."""
    package = dotted_package(path).split(".")
    inside = {id(inner) for outer in ast.walk(tree) if isinstance(outer, Function) for inner in ast.walk(outer)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, id(node) in inside
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            for alias in node.names:
                name = ".".join([*base, *filter(None, [node.module]), alias.name])
                yield node.lineno, name, id(node) in inside
        elif isinstance(node, ast.Call) and called_name(node) in {"__import__", "import_module"}:
            yield node.lineno, "an import computed while running", id(node) in inside


def import_complaints(path: str, tree: ast.AST, room: Room) -> Iterator[str]:
    """Imports that the folder's row of the table does not allow."""
    for line, name, inside_function in imported_names(path, tree):
        if not room.admits(name, inside_function):
            hint = "import it inside the function that needs it" if room.admits(name, True) else room_hint(room)
            yield f"{path}:{line}: {name} may not be imported here: {hint}"


def room_hint(room: Room) -> str:
    """What a file of this room may import, short enough for one line."""
    ours = sorted(name for name in room.allowed if name.startswith("headgate."))
    return f"this folder sees only {', '.join(ours) or 'itself'} and a short list (ROOMS in tests/test_tidy.py)"


def dotted_package(path: str) -> str:
    """The package that a file is in, dotted: `headgate.broker.core.kv` for `broker/core/kv/items.py`."""
    folders = list(Path(path).parent.parts)
    return ".".join(folders if folders[:1] in ([], ["headgate"], ["tests"]) else ["headgate", *folders])


def face_complaints(rooms: Collection[str], path: str, tree: ast.AST) -> Iterator[str]:
    """Imports from a module inside a room by a file outside of it: a room is entered through its `__init__`."""
    here = dotted_package(path)
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom):
            continue
        package = here.split(".")
        base = package[: len(package) - node.level + 1] if node.level else []
        module = ".".join([*base, *filter(None, [node.module])])
        room = module.rpartition(".")[0]
        if room in rooms and module not in rooms and here != room and not here.startswith(f"{room}."):
            yield f"{path}:{node.lineno}: {module} is inside a room: import from its face, {room}"


def floor_complaints(house: str, floors: Sequence[str], path: str, tree: ast.AST) -> Iterator[str]:
    """Imports by a room from a room that stands above it."""
    room = path.removeprefix(f"{house}/").partition("/")[0]
    if room not in floors:
        return
    above = {f"headgate.{house.replace('/', '.')}.{name}" for name in floors[floors.index(room) + 1 :]}
    for line, name, _ in imported_names(path, tree):
        if any(name == one or name.startswith(f"{one}.") for one in above):
            yield f"{path}:{line}: {name} stands above {room}: hand it in, or return an event for who joins the two"


def called_name(call: ast.Call) -> str:
    """The last word of what is called: `loop.create_task(...)` is `create_task`."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    """Every call in the tree."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def swallowing_complaints(path: str, tree: ast.AST) -> Iterator[str]:
    """Handlers that hide every error, ours included."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ExceptHandler):
            continue
        if node.type is None:
            yield f"{path}:{node.lineno}: a bare except catches even Ctrl-C: name the errors you can handle"
        elif names_everything(node.type) and all(is_idle(statement) for statement in node.body):
            yield f"{path}:{node.lineno}: an error is swallowed: name the errors, or let it out, or note it"


def names_everything(kind: ast.expr) -> bool:
    """Whether an except clause names Exception or BaseException, alone or in a tuple."""
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(isinstance(one, ast.Name) and one.id in {"Exception", "BaseException"} for one in kinds)


def is_idle(statement: ast.stmt) -> bool:
    """Whether a statement does nothing: pass, continue, or a lone constant."""
    lone = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return lone or isinstance(statement, ast.Pass | ast.Continue)


def task_complaints(path: str, tree: ast.AST) -> Iterator[str]:
    """Tasks started outside their one owner: the loop keeps only weak references, so a task may vanish."""
    for call in calls(tree):
        if called_name(call) in {"create_task", "ensure_future"}:
            yield f"{path}:{call.lineno}: {called_name(call)}: let a task owner (TASK_OWNERS) start, hold and end it"


def sleep_complaints(path: str, tree: ast.AST) -> Iterator[str]:
    """Tests that wait for real time; a literal sleep(0) only lets others run and is fine."""
    for call in calls(tree):
        idle = [ast.literal_eval(argument) for argument in call.args if isinstance(argument, ast.Constant)] == [0]
        if called_name(call) == "sleep" and not idle:
            yield f"{path}:{call.lineno}: a test sleeps: hand in the time, or wait for the event itself"


def print_complaints(path: str, tree: ast.AST) -> Iterator[str]:
    """Prints outside the command line."""
    for call in calls(tree):
        if isinstance(call.func, ast.Name) and call.func.id == "print":
            yield f"{path}:{call.lineno}: print: the core emits notes, the daemon logs, only ops and __main__ print"


def is_set(node: ast.expr) -> bool:
    """Whether an expression is visibly a set: a literal, a comprehension, set(...) or frozenset(...)."""
    made = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"set", "frozenset"}
    return made or isinstance(node, ast.Set | ast.SetComp)


def set_order_complaints(path: str, tree: ast.AST) -> Iterator[str]:
    """Places where the order of a set becomes the order of something else; it changes with the hash seed."""
    for node in ast.walk(tree):
        walked: list[ast.expr] = []
        if isinstance(node, ast.For | ast.comprehension):
            walked = [node.iter]
        elif isinstance(node, ast.Call) and called_name(node) in {"list", "tuple", "iter", "enumerate", "join", "zip"}:
            walked = node.args
        for expression in walked:
            if is_set(expression):
                yield f"{path}:{expression.lineno}: a set has no order, and runs must repeat: sorted(...), or a dict"


def asynchronous_complaints(path: str, tree: ast.AST) -> Iterator[str]:
    """Coroutines in a folder that decides and never waits."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith):
            yield f"{path}:{node.lineno}: this folder never waits: return an effect and let the host wait"


UNFINISHED = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|X" + r"XX)\b")
MACHINE_PATH = re.compile(r"(?<![\w.~/-])/(?:home|root|Users|work)/\w|\b[A-Z]:\\Users\\")
EMPTY_PHRASE = re.compile(r"See the head of " + r"this file|Asserts what must " + r"always hold")
FOREIGN_PAGE = re.compile(r"\b(?:DESIGN|reliability|performance|style) \d")
REGISTRY = re.compile(r"\b(?:pypi\.org|pythonhosted\.org|npmjs\.(?:com|org))\b|--(?:extra-)?index-url|\bfile:///")


def text_complaints(path: str, text: str) -> Iterator[str]:
    """Words that no text of the project may hold, prose included."""
    for number, line in enumerate(text.splitlines(), start=1):
        if UNFINISHED.search(line):
            yield f"{path}:{number}: unfinished work belongs in an issue: finish it or describe it there"
        if MACHINE_PATH.search(line):
            yield f"{path}:{number}: the path of one machine: make it relative, or take it from a setting"
        if EMPTY_PHRASE.search(line):
            yield f"{path}:{number}: this says nothing: say what the class does, or what the method checks"
        if FOREIGN_PAGE.search(line):
            yield f"{path}:{number}: a document that is not in the repository: say the thing instead"
        if REGISTRY.search(line):
            yield f"{path}:{number}: the address of a package registry: pip's own configuration chooses it"


def randomness_complaints(path: str, tree: ast.AST) -> Iterator[str]:
    """Sources of randomness made where they should be handed in."""
    for call in calls(tree):
        if called_name(call) == "Random":
            yield f"{path}:{call.lineno}: the host makes the random.Random and hands it in, so that one seed decides"


def package_complaints(files: Iterable[str], docker_files: Iterable[str]) -> Iterator[str]:
    """Folders that Python would not see as packages, and the one that it must not."""
    present = set(files)
    for folder in sorted({Path(path).parent for path in present} - {Path(".")}):
        if (folder / "__init__.py").as_posix() not in present:
            yield f"{folder.as_posix()}: has no __init__.py, so tests and code of one name collide: add one"
    for path in docker_files:
        if path.endswith("__init__.py"):
            yield f"{path}: would hide the installed package `docker`: remove it"


TEXT_SUFFIXES = {".py", ".md", ".toml", ".txt", ".yml", ".yaml", ".json", ".lark", ".service", ".sh", ".Dockerfile"}
TEXT_NAMES = {"Makefile", "Dockerfile", "run", ".gitignore"}


def text_files(root: Path, folders: Iterable[str]) -> Iterator[str]:
    """Paths of every text that is written by hand: at the root, in .ci and below these folders."""
    places = [*root.glob("*"), *root.glob(".ci/*"), *(one for folder in folders for one in (root / folder).rglob("*"))]
    for path in sorted(places):
        if path.is_file() and (path.suffix in TEXT_SUFFIXES or path.name in TEXT_NAMES):
            yield path.relative_to(root).as_posix()


def python_files(root: Path, folders: Iterable[str]) -> Iterator[str]:
    """Paths, relative to the root, of every Python file below these folders, in order."""
    for folder in folders:
        found = [root / folder] if folder.endswith(".py") else (root / folder).rglob("*.py")
        yield from sorted(one.relative_to(root).as_posix() for one in found if one.is_file())
