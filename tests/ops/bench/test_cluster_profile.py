"""Profiles by layer: which file is in which layer, whose time a built-in function is, and a profile between signals."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from ops.bench import cluster_profile
from ops.bench.cluster_profile import LAYERS, LOOP, layer_of, layers, main, read

ROOT = Path(cluster_profile.__file__).resolve().parents[2]

BUSY = """
import os, signal
def work():
    return sum(number * number for number in range(200_000))
work()
os.kill(os.getpid(), signal.SIGUSR1)
work()
os.kill(os.getpid(), signal.SIGUSR1)
"""


@pytest.mark.parametrize(
    ("path", "layer"),
    [
        ("matching/index.py", "matching"),
        ("protocol/codec.py", "codec"),
        ("protocol/aio/connection.py", "connections"),
        ("protocol/peer_codec.py", "FORWARD on the wire"),
        ("broker/daemon/driver.py", "connections"),
        ("broker/core/forwarding.py", "whose keys: split and relay"),
        ("broker/core/peer_traffic.py", "links to brokers"),
        ("broker/core/keyed_leases.py", "upkeep of ring and copies"),
        ("broker/core/subscribers.py", "delivery to sessions"),
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


def test_a_builtin_function_counts_for_its_callers_and_the_rest_is_the_loop() -> None:
    index, codec, builtin = ("matching/index.py", 1, "match"), ("protocol/codec.py", 1, "decode"), ("~", 0, "len")
    stats: cluster_profile.Stats = {
        index: (1, 1, 2.0, 2.5, {}),
        codec: (1, 1, 1.0, 1.5, {}),
        builtin: (2, 2, 1.0, 1.0, {index: (1, 1, 0.75, 0.75), codec: (1, 1, 0.25, 0.25)}),
    }
    assert layers(5.0, stats) == {"matching": 2.75, "codec": 1.25, LOOP: 1.0}
    assert layers(3.0, stats)[LOOP] == 0.0


def test_a_profile_lasts_from_signal_to_signal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "busy_for_a_profile.py").write_text(BUSY)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["this"])
    former = signal.getsignal(signal.SIGUSR1)
    place = tmp_path / "one.profile"
    try:
        main([str(place), "-m", "busy_for_a_profile"])
    finally:
        signal.signal(signal.SIGUSR1, former)
    found = read([place])
    assert 0.0 < sum(found.values()) < 5.0
    assert found["other"] > 0.5 * sum(found.values()), "the work was between the signals"
    assert read([place, place])["other"] == pytest.approx(2 * found["other"])
    assert not place.with_name("one.profile.part").exists()


def test_words_that_name_no_module_are_refused() -> None:
    with pytest.raises(SystemExit, match="usage"):
        main(["file", "serve", "x"])
