"""Profiles by layer: which file is in which layer, whose time a library's is, and a profile between signals."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType

import pytest

from headgate.ops.bench.cluster import profile
from headgate.ops.bench.cluster.profile import LAYERS, OTHER, layer_at, layer_of, main, read

ROOT = Path(profile.__file__).resolve().parents[3]

BUSY = """
import os, signal, time
def work():
    until = time.process_time() + 0.2
    while time.process_time() < until:
        sum(number * number for number in range(1000))
work()
os.kill(os.getpid(), signal.SIGUSR1)
work()
os.kill(os.getpid(), signal.SIGUSR1)
work()
"""


@pytest.mark.parametrize(
    ("path", "layer"),
    [
        ("matching/index/index.py", "matching"),
        ("protocol/wire/codec.py", "codec"),
        ("protocol/aio/connection.py", "connections"),
        ("broker/daemon/driver.py", "connections"),
        ("broker/core/forwarding/forwarding.py", "whose keys: split and relay"),
        ("broker/core/links/flow.py", "links to brokers"),
        ("broker/core/kv/leases.py", "upkeep of ring and copies"),
        ("broker/core/delivery/subscribers.py", "delivery to sessions"),
    ],
)
def test_a_file_is_in_its_layer(path: str, layer: str) -> None:
    assert (ROOT / path).exists(), "the layers name files that there are"
    assert layer_of(str(ROOT / path)) == layer


def test_strange_files_are_other() -> None:
    assert layer_of("<string>") == layer_of(json_path := "usr/lib/python3/json/decoder.py") == "other"
    assert "broker" not in json_path


def test_every_layer_has_files() -> None:
    short = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py") if path.parts]
    for _, beginnings in LAYERS:
        for beginning in beginnings:
            assert any(path.startswith(beginning) for path in short), beginning


def test_a_library_counts_for_whoever_called_it() -> None:
    def frame_of(path: str, inner: str = "") -> FrameType:
        """A frame of code of that file, called by nobody of ours, or by another such frame."""
        source = "import sys\nframe = sys._getframe()" if not inner else "frame = call()"
        space: dict[str, object] = {"call": lambda: frame_of(inner)}
        exec(compile(source, path, "exec"), space)
        frame = space["frame"]
        assert isinstance(frame, FrameType)
        return frame

    assert layer_at(frame_of("matching/index/index.py")) == "matching"
    assert layer_at(frame_of("matching/index/index.py", inner="lib/msgpack.py")) == "matching"
    assert layer_at(frame_of("matching/index/index.py", inner="protocol/wire/codec.py")) == "codec"
    assert layer_at(frame_of("lib/msgpack.py")) == layer_at(None) == OTHER


def test_a_profile_lasts_from_signal_to_signal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "busy_for_a_profile.py").write_text(BUSY)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["this"])
    former = {number: signal.getsignal(number) for number in (signal.SIGUSR1, signal.SIGPROF)}
    place = tmp_path / "one.profile"
    try:
        main([str(place), "-m", "busy_for_a_profile"])
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
    found = read([place])
    assert set(found) == {OTHER} and 10 < found.total() <= 110, "0.2 s of 0.6 s, a sample for 2 ms or a tick"
    assert read([place, place]).total() == 2 * found.total()
    assert not place.with_name("one.profile.part").exists()


def test_words_that_name_no_module_are_refused() -> None:
    with pytest.raises(SystemExit, match="usage"):
        main(["file", "serve", "x"])
