"""What a module offers is what it says: `__all__` everywhere, true, without repeats, and explained by the manual."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import tidy

ROOT = Path(__file__).resolve().parent.parent
CODE = ("broker", "protocol", "matching", "ops", "headgate/__init__.py", "pyspark_headgate.py")


def bound_names(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """(name, made here rather than imported?) for every name that the module's top level binds."""
    statements = list(tree.body)
    while statements:
        node = statements.pop(0)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, True
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name.split(".")[0], False) for alias in node.names)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            names = (inner for inner in ast.walk(node) if isinstance(inner, ast.Name))
            yield from ((name.id, True) for name in names if isinstance(name.ctx, ast.Store))
        elif isinstance(node, ast.If | ast.Try | ast.With):
            parts = [getattr(node, part, []) for part in ("body", "orelse", "finalbody")]
            parts += [handler.body for handler in getattr(node, "handlers", [])]
            statements.extend(statement for part in parts for statement in part)


def exported(tree: ast.Module) -> list[str] | None:
    """The module's `__all__`, or None when it has none."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            return list(ast.literal_eval(node.value))  # type: ignore[attr-defined]
    return None


def export_complaints(path: str, tree: ast.Module) -> Iterator[str]:
    """`__all__` is missing, untrue or repeats itself."""
    bound = dict(bound_names(tree))
    names = exported(tree)
    if names is None:
        public = sorted(name for name, made_here in bound.items() if made_here and not name.startswith("_"))
        if public or (path.endswith("__init__.py") and bound):
            yield f"{path}: has no __all__, yet binds {', '.join(public) or 'imported names'}: say what others may use"
        return
    for name, count in Counter(names).items():
        if count > 1:
            yield f"{path}: __all__ names {name} {count} times: once is enough"
        if name not in bound:
            yield f"{path}: __all__ names {name}, which the module does not bind: mend or remove it"
        if name.startswith("_") and name != "__version__":
            yield f"{path}: __all__ names {name}: an underscore means private, so drop one of the two"


def manual_complaints(path: str, tree: ast.Module) -> Iterator[str]:
    """An `__init__.py` that is more than manual and re-exports, or whose manual is silent about what it exports."""
    manual = ast.get_docstring(tree)
    if manual is None:
        yield f"{path}: has no docstring: a package's docstring is its manual"
    for name in exported(tree) or []:
        if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", manual or ""):
            yield f"{path}: re-exports {name}, and its manual does not mention it: say what it is for"
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.For | ast.While | ast.With):
            yield f"{path}:{node.lineno}: an __init__.py is manual and re-exports only: move the code to a file"


def parsed_files() -> list[tuple[str, ast.Module]]:
    paths = tidy.python_files(ROOT, CODE)
    return [(path, ast.parse((ROOT / path).read_text(encoding="utf-8"))) for path in paths]


def none_of(complaints: Iterator[str]) -> None:
    found = list(complaints)
    if found:
        pytest.fail("\n".join(["the rules of the house (CONTRIBUTING.md):", *found]), pytrace=False)


def test_every_module_says_what_it_offers() -> None:
    files = [(path, tree) for path, tree in parsed_files() if not path.endswith("__main__.py")]
    assert files
    none_of(line for path, tree in files for line in export_complaints(path, tree))


def test_every_module_opens_with_its_job() -> None:
    none_of(
        f"{path}: has no docstring: its first sentence says the file's job"
        for path, tree in parsed_files()
        if ast.get_docstring(tree) is None
    )


def test_every_package_is_manual_and_reexports() -> None:
    packages = [(path, tree) for path, tree in parsed_files() if path.endswith("__init__.py")]
    assert packages
    none_of(line for path, tree in packages for line in manual_complaints(path, tree))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("def a(): ...", "no __all__"),
        ("limit_bytes = 4", "no __all__"),
        ("limit_bytes: int = 4", "no __all__"),
        ("__all__ = ['a', 'a']\ndef a(): ...", "2 times"),
        ("__all__ = ['b']\ndef a(): ...", "does not bind"),
        ("__all__ = ['_a']\ndef _a(): ...", "private"),
    ],
)
def test_an_untrue_offer_is_found(text: str, word: str) -> None:
    (complaint,) = export_complaints("some/file.py", ast.parse(text))
    assert word in complaint


@pytest.mark.parametrize(
    "text",
    [
        "import os\n_private = os.sep",
        "from .a import b\n__all__ = ['b']",
        "__all__ = ['A', 'b']\ntry:\n    import c as b\nexcept ImportError:\n    b = None\nclass A: ...",
        "__all__: list[str] = ['a', 'b']\na, b = 1, 2",
    ],
)
def test_a_true_offer_is_fine(text: str) -> None:
    assert list(export_complaints("some/file.py", ast.parse(text))) == []


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("from .a import b\n__all__ = ['b']", "no docstring"),
        ('"""Nothing about it, only bb."""\nfrom .a import b\n__all__ = ["b"]', "does not mention"),
        ('"""The manual."""\ndef a(): ...', "re-exports only"),
    ],
)
def test_a_silent_manual_is_found(text: str, word: str) -> None:
    assert any(word in complaint for complaint in manual_complaints("some/__init__.py", ast.parse(text)))


def test_a_full_manual_is_fine() -> None:
    text = '"""`b` does it."""\nfrom .a import b\n__all__ = ["b"]'
    assert list(manual_complaints("some/__init__.py", ast.parse(text))) == []
