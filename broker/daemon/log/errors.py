"""Why a broker does not start with the log that it finds: each says which file, what is wrong and what to do."""

from __future__ import annotations

from pathlib import Path

__all__ = ["ForeignLog", "ForeignWal", "LogUnusable", "LogUnwritable", "NoFile"]


class LogUnusable(Exception):
    """The log in the data directory cannot be used as it is."""

    def __init__(self, path: Path, problem: str, advice: str) -> None:
        super().__init__(f"{path} {problem}: {advice}")
        self.path = path
        self.problem = problem
        self.advice = advice


class ForeignLog(LogUnusable):
    """It was written by a broker of another name."""

    def __init__(self, path: Path, owner: str, name: str) -> None:
        advice = f"start that one on this directory (--name {owner}), or give {name!r} its own with --data"
        super().__init__(path, f"is the log of broker {owner!r}, not of {name!r}", advice)
        self.owner = owner
        self.name = name


class ForeignWal(LogUnusable):
    """The newest part of it, which is a file of its own until it is taken over, is of another log."""

    def __init__(self, path: Path) -> None:
        advice = "put back the one that was there, or move it away to start without the newest rows"
        super().__init__(path, "belongs to another log.db", advice)


class NoFile(LogUnusable):
    """A directory stands where one of its files belongs."""

    def __init__(self, path: Path) -> None:
        advice = "move that directory away, or give another place for the data with --data"
        super().__init__(path, "is a directory, and a broker keeps a file of that name", advice)


class LogUnwritable(LogUnusable):
    """The directory or the file does not let us write."""

    def __init__(self, path: Path, reason: str) -> None:
        advice = "make file and directory readable and writable for the broker, or give another directory with --data"
        super().__init__(path, f"cannot be opened ({reason})", advice)
        self.reason = reason
