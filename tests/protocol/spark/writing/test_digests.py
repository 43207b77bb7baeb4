"""The rolling digest says whether the same events came in the same order, wherever batches end."""

from __future__ import annotations

import pytest

pa = pytest.importorskip("pyarrow")

from headgate.protocol.spark.layout import Layout  # noqa: E402
from headgate.protocol.spark.writing.digests import DIGEST_BYTES, RollingDigest  # noqa: E402
from headgate.protocol.spark.writing.frames import Encoder, Frame  # noqa: E402


def frame(numbers: list[int], topics: list[str] | None = None) -> Frame:
    columns = {"n": numbers, "topic": topics or ["q/a"] * len(numbers)}
    (made,) = Encoder(Layout("", "", (), (("n", "int"),), ""), 1 << 20).frames(pa.RecordBatch.from_pydict(columns))
    return made


def digest(*frames: Frame, seed: str = "") -> bytes:
    rolling = RollingDigest(seed)
    for one in frames:
        rolling.add(one)
    return rolling.value()


def test_it_does_not_depend_on_where_batches_end() -> None:
    whole = frame([1, 2, 3, 4], ["q/a", "q/a", "q/b", "q/a"])
    assert digest(whole) == digest(whole.slice(0, 1), whole.slice(1, 3)) == digest(whole.slice(0, 3), whole.slice(3, 1))
    assert len(digest(whole)) == DIGEST_BYTES


def test_it_depends_on_order_content_topic_and_seed() -> None:
    samples = [
        digest(frame([1, 2])),
        digest(frame([2, 1])),
        digest(frame([1])),
        digest(frame([1, 2], ["q/b", "q/a"])),
        digest(frame([1, 2], ["q/a", "q/b"])),
        digest(frame([1, 2]), seed="q"),
        digest(),
    ]
    assert len(set(samples)) == len(samples)


def test_adding_gives_the_digest_so_far() -> None:
    rolling = RollingDigest("q")
    assert rolling.add(frame([1])) == digest(frame([1]), seed="q")
    assert rolling.add(frame([2])) == digest(frame([1, 2]), seed="q")


def test_where_records_end_counts() -> None:
    """Two records must not be mistaken for others that join to the same bytes."""
    layout = Layout("q", "binary", (), (), "")

    def bodies(*values: bytes) -> bytes:
        batch = pa.RecordBatch.from_pydict({"value": list(values)})
        return digest(*Encoder(layout, 1 << 20).frames(batch), seed="q")

    inner = b"\x92\x80\xc4\x01x"
    assert bodies(inner) != bodies(b"x", b"x")
