"""A new log.db from a damaged one: what is copied, what is said, and that nothing of the old file is thrown away."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.broker.core.effects import FindIds
from headgate.broker.core.log_state import ProducerState
from headgate.broker.daemon.log import LogUnusable, SqliteLogStore
from headgate.broker.daemon.log import salvage as log_salvage
from headgate.broker.daemon.log.mark import Mark, MarkFile
from headgate.broker.daemon.log.salvage import Recovered, salvage
from headgate.broker.daemon.log.tables import Meta, load_meta, place_of
from headgate.protocol.data import decode_row
from tests.support.damaged_log import NOW, LogKit


@pytest.fixture(scope="module")
def kit() -> Iterator[LogKit]:
    kit = LogKit().fill()
    yield kit
    kit.end()


def damaged(kit: LogKit, *changes: str) -> tuple[Path, Meta, Mark]:
    """A copy after these statements, what it said of itself, and its mark."""
    path = kit.copy() / "log.db"
    connection = sqlite3.connect(path)
    meta = load_meta(connection)
    for change in changes:
        connection.execute(change)
    connection.commit()
    connection.close()
    mark = MarkFile(path.with_name("log.mark")).read()
    assert meta is not None and mark is not None
    return path, meta, mark


def salvaged(kit: LogKit, *changes: str) -> Recovered:
    path, meta, mark = damaged(kit, *changes)
    found = salvage(path, "ann", meta, "by hand", mark)
    found.connection.close()
    return found


def ends(found: Recovered) -> dict[tuple[str, int], int]:
    return {(log.name.stream, log.name.kind): log.next for log in found.logs}


WHOLE = {("quotes", 0): 60, ("quotes", 1): 40, ("trades", 0): 20}


def test_what_is_sound_goes_on_and_takes_no_epoch(kit: LogKit) -> None:
    found = salvaged(kit)
    assert ends(found) == WHOLE and not found.ours
    assert (found.meta.epoch, found.meta.commits) == (NOW, 24 + 1)
    assert {one.name: one for one in found.producers} == kit.producers
    assert found.durables == {name: states[-1] for name, states in kit.durables.items()}
    (text,) = found.damage
    assert text == "log.db was damaged (by hand): it is kept as log.damaged-1.db, and what could be read of it goes on"


def test_a_log_ends_at_its_first_bad_row(kit: LogKit) -> None:
    bad = f"UPDATE entry SET time = time + 1 WHERE place = {place_of(1, 10)}"
    found = salvaged(kit, bad)
    assert ends(found) == WHOLE | {("quotes", 0): 10} and found.ours
    assert "positions 10 to 59 of events 'quotes' in ann@1700000000: a row fails its checksum" in found.damage
    cut = next(log for log in found.logs if log.next == 10)
    assert cut.total - cut.before == sum(len(row) for row in kit.rows[cut.name] if decode_row(row).first < 10)
    assert cut.last_time == NOW + 3


def test_another_brokers_log_that_is_cut_takes_no_epoch(kit: LogKit) -> None:
    found = salvaged(kit, f"DELETE FROM entry WHERE place = {place_of(3, 0)}")
    assert ends(found) == WHOLE | {("trades", 0): 0} and not found.ours
    assert any("rows are missing" in text for text in found.damage)
    assert next(log for log in found.logs if log.name.broker == "bob").first_time == 0


def test_a_log_whose_name_is_lost_is_ours_for_all_we_know(kit: LogKit) -> None:
    found = salvaged(kit, "UPDATE log SET stream = 'other' WHERE number = 3")
    assert ends(found) == {key: end for key, end in WHOLE.items() if key[0] != "trades"} and found.ours
    assert any("1 of them do not pass" in text for text in found.damage)


def test_producers_are_known_from_their_rows(kit: LogKit) -> None:
    found = salvaged(kit, "DELETE FROM producer", "INSERT INTO producer VALUES ('x', 1, 1, x'', 1, 1)")
    assert {one.name: (one.epoch, one.next, one.digest) for one in found.producers} == {
        name: (one.epoch, one.next, one.digest) for name, one in kit.producers.items()
    }
    assert any(text.startswith("producers are known from their rows alone") for text in found.damage)


def test_a_fence_in_the_table_is_newer_than_the_rows(kit: LogKit, monkeypatch: pytest.MonkeyPatch) -> None:
    name = next(iter(kit.producers))
    fence = ProducerState(name, 9, kit.producers[name].next, b"", NOW)
    monkeypatch.setattr(log_salvage, "load_producers", lambda *_, **__: ([fence], 0, ""))
    assert fence in salvaged(kit).producers


def test_without_its_description_the_mark_says_whose_rows_they_are(kit: LogKit) -> None:
    path, meta, mark = damaged(kit, "DELETE FROM meta")
    found = salvage(path, "ann", None, "by hand", mark)
    found.connection.close()
    assert ends(found) == WHOLE and found.ours
    assert found.meta.epoch == NOW and found.meta.identity != meta.identity


def test_without_both_nothing_passes(kit: LogKit) -> None:
    path, _, _ = damaged(kit, "DELETE FROM meta")
    found = salvage(path, "ann", None, "by hand", None)
    found.connection.close()
    assert found.logs == [] and found.ours


def test_older_rows_than_the_mark_knows_are_told(kit: LogKit) -> None:
    path, meta, mark = damaged(kit)
    found = salvage(path, "ann", meta, "by hand", mark._replace(commits=mark.commits + 5))
    found.connection.close()
    assert "it lacks its newest 5 commits as well" in found.damage and found.ours
    assert found.meta.commits == mark.commits + 6


def test_a_file_that_is_none_gives_an_empty_log(kit: LogKit) -> None:
    path, meta, mark = damaged(kit)
    path.write_bytes(b"no database at all" * 1000)
    found = salvage(path, "ann", meta, "by hand", mark)
    found.connection.close()
    assert found.logs == [] and found.ours
    assert path.with_name("log.damaged-1.db").read_bytes() == b"no database at all" * 1000


def test_states_of_durable_subscriptions_are_copied_one_by_one(kit: LogKit) -> None:
    path, meta, mark = damaged(kit, "UPDATE durable SET state = x'00' WHERE name = 'billing-0'", "DELETE FROM meta")
    (path.parent / "log.mark").unlink()
    opened = SqliteLogStore(path.parent, "ann", lambda: NOW).open()
    assert opened.durables == {} and opened.damage, "nobody knows whose rows these are"
    path, meta, mark = damaged(kit, "UPDATE durable SET state = x'00' WHERE name = 'billing-0'")
    found = salvage(path, "ann", meta, "by hand", mark)
    found.connection.close()
    assert found.durables == {name: states[-1] for name, states in kit.durables.items() if name != "billing-0"}
    assert "the state of durable subscription 'billing-0' fails its checksum" in found.damage
    store = SqliteLogStore(path.parent, "ann", lambda: NOW)
    assert store.open().durables == found.durables, "under the seed of the new file"
    store.close()


def test_without_the_table_of_durable_subscriptions_that_is_said_only_when_it_was_there(kit: LogKit) -> None:
    found = salvaged(kit, "DROP TABLE durable")
    assert found.durables == {} and len(found.damage) == 1, "a file of before there was this table"


def test_ids_are_found_in_the_new_file(kit: LogKit) -> None:
    path, meta, mark = damaged(kit)
    salvage(path, "ann", meta, "by hand", mark).connection.close()
    MarkFile(path.with_name("log.mark")).path.unlink()
    store = SqliteLogStore(path.parent, "ann", lambda: NOW)
    store.open()
    with_ids = [row for rows in kit.rows.values() for number, row in enumerate(rows)]
    rows, upto = store.find(FindIds(1, "job/quotes/0", 0))
    assert upto is None and rows and all(row in with_ids for row in rows)
    store.close()


def test_without_room_for_the_new_file_the_old_one_stays(kit: LogKit, monkeypatch: pytest.MonkeyPatch) -> None:
    path, meta, mark = damaged(kit)
    before = path.read_bytes()

    def cramped(*arguments: Any, **named: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = sqlite3.connect(*arguments, **named)
        connection.execute("PRAGMA max_page_count = 12")
        return connection

    with pytest.raises(LogUnusable, match=r"is damaged \(by hand\).*full.*make room on that disk"):
        salvage(path, "ann", meta, "by hand", mark, cramped)
    assert path.read_bytes() == before and not path.with_name("log.damaged-1.db").exists()
