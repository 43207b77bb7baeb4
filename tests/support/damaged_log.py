"""A log.db with all kinds of rows, as a killed broker leaves it, and a judge of what becomes of damaged copies."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from headgate.broker.core.effects import Append, FindIds, KeepDurable, LogWrite
from headgate.broker.core.inputs import Opened
from headgate.broker.core.log_state import ProducerState
from headgate.broker.daemon.log import LogUnusable, SqliteLogStore
from headgate.protocol.data import LogKind, LogName, Row, encode_row

__all__ = ["FAST", "LogKit", "NOW"]

NOW = 1_700_000_000
FAST = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Memory, where there is such a folder: hundreds of copies are opened, and no power fails."""

_LOGS = [
    LogName("ann", NOW, int(LogKind.EVENTS), "quotes"),
    LogName("ann", NOW, int(LogKind.DELIVERIES), "quotes"),
    LogName("bob", NOW - 9, int(LogKind.EVENTS), "trades"),
]


def row_of(log: LogName, first: int, count: int, size: int) -> tuple[bytes, ProducerState]:
    """A row as a broker writes it, and what it makes of its producer."""
    name, ids = f"job/{log.stream}/{log.kind}", bytes([first % 251]) * 5
    lengths = (size // count).to_bytes(4, "little") * count
    records = bytes([first % 256]) * (size // count * count)
    row = Row(first, count, NOW + first, "o-1", first, b"", log.stream, lengths, {}, True, records)
    row.producer, row.epoch, row.number, row.digest, row.ids = name, 3, first, ids, ids
    return encode_row(row), ProducerState(name, 3, first + count, ids, NOW + first)


@dataclass
class LogKit:
    """Files of a broker named ann. `rows` is what it acknowledged; half of it is still in the write-ahead file."""

    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(dir=FAST)))
    rows: dict[LogName, list[bytes]] = field(default_factory=dict)
    producers: dict[str, ProducerState] = field(default_factory=dict)
    durables: dict[str, list[bytes]] = field(default_factory=dict)
    """Every state that a durable subscription had, the newest last."""
    copies: int = 0

    def fill(self, commits: int = 24, checkpoint_at: int = 12) -> LogKit:
        """Write it all, and leave it as if killed."""
        store = SqliteLogStore(self.folder / "live", "ann", lambda: NOW)
        store.path.parent.mkdir()
        store.open()
        ends = dict.fromkeys(_LOGS, 0)
        for number in range(commits):
            entries: list[LogWrite] = []
            for log in _LOGS[: 1 + number % 3]:
                count = 1 + number % 4
                row, producer = row_of(log, ends[log], count, (50, 700, 9_000)[number % 3])
                entries.append(Append(number + 1, log, row, ends[log], count, NOW + number, producer, number % 2 == 0))
                self.rows.setdefault(log, []).append(row)
                self.producers[producer.name] = producer
                ends[log] += count
            name, state = f"billing-{number % 3}", bytes([number]) * (40, 3_000)[number % 2]
            entries.append(KeepDurable(number + 1, name, state))
            self.durables.setdefault(name, []).append(state)
            store.append(entries)
            if number == checkpoint_at:
                store._written = 10**9
                store.tidy()
        shutil.copytree(store.path.parent, self.folder / "killed")
        store.close()
        return self

    def copy(self) -> Path:
        """The files, to do damage to."""
        self.copies += 1
        return Path(shutil.copytree(self.folder / "killed", self.folder / f"copy-{self.copies}"))

    def judge(self, folder: Path) -> tuple[Opened | None, str]:
        """Open the copy and hold the store to its promises; what was told, and why it was refused."""
        store = SqliteLogStore(folder, "ann", lambda: NOW)
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        try:
            opened = store.open()
        except LogUnusable as refused:
            assert {path.name: path.read_bytes() for path in folder.iterdir()} == before, "refused, and yet changed"
            shutil.rmtree(folder)
            return None, str(refused)
        self._prefixes(store, opened)
        self._goes_on(store, opened)
        shutil.rmtree(folder)
        return opened, ""

    def _prefixes(self, store: SqliteLogStore, opened: Opened) -> None:
        """Every log is a beginning of what was written, and where it is not all of it that is said."""
        missing_ours = False
        ends = {state.name: state.next for state in opened.logs}
        for log, rows in self.rows.items():
            found, end, damage = store.read(log, 0, 10**9)
            assert not damage and found == rows[: len(found)]
            assert not found or end == ends[log]
            if len(found) < len(rows):
                assert opened.damage, f"{len(rows) - len(found)} rows of {log} are gone, and nobody says so"
                missing_ours = missing_ours or log.broker == "ann"
        assert opened.epoch > NOW or not missing_ours, "positions would be given a second time"
        assert opened.epoch == NOW or opened.damage, "a new epoch without a reason"
        for producer in opened.producers:
            assert producer == self.producers[producer.name] or opened.damage
            assert store.find(FindIds(1, producer.name, 0)) is not None
        for name, states in self.durables.items():
            assert opened.durables.get(name) == states[-1] or opened.damage, f"{name} is not as it was left"
            assert opened.durables.get(name) in (None, *states)

    def _goes_on(self, store: SqliteLogStore, opened: Opened) -> None:
        """It can be written to, and the next start finds nothing to complain of."""
        log = LogName("ann", opened.epoch, int(LogKind.EVENTS), "quotes")
        end = next((state.next for state in opened.logs if state.name == log), 0)
        row, producer = row_of(log, end, 2, 100)
        store.append([Append(1, log, row, end, 2, NOW, producer)])
        while store.untidy:
            store.tidy()
        store.close()
        again = SqliteLogStore(store.path.parent, "ann", lambda: NOW)
        opened_again = again.open()
        assert (opened_again.epoch, opened_again.damage) == (opened.epoch, [])
        assert again.read(log, end, 1) == ([row], end + 2, "")
        again.close()

    def end(self) -> None:
        """Remove all of it."""
        shutil.rmtree(self.folder)
