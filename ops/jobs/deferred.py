"""Defers the imports of a face until somebody asks for a name: what they need may not be installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["deferred"]


def deferred(package: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package; `names` says which module has a name."""

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{names[name]}"), name)

    return find
