"""`headgate cert init`: what is made, what is kept, what is refused."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from cryptography import x509

from headgate.ops.cli import main


def init(folder: Path, *words: str) -> int:
    return main(["cert", "init", str(folder), *words])


def test_keys_are_their_owner_s_alone(tmp_path: Path) -> None:
    assert init(tmp_path / "new", "--brokers", "a,b", "--hosts", "db.example,10.0.0.7") == 0
    files = {file.name: stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "new").iterdir()}
    assert {name for name, mode in files.items() if mode == 0o600} == {"a.key", "b.key", "ca.key", "client.key"}
    assert {name for name in files if name.endswith(".pem")} == {"a.pem", "b.pem", "ca.pem", "client.pem"}


def test_the_authority_is_kept_and_brokers_are_added(tmp_path: Path) -> None:
    assert init(tmp_path, "--brokers", "a") == 0
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert init(tmp_path, "--brokers", "b") == 0
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    assert (tmp_path / "b.pem").exists()
    assert init(tmp_path, "--brokers", "a") == 0
    assert (tmp_path / "a.pem").read_bytes() != before["a.pem"]


def test_no_broker_can_prove_another_one_s_name(tmp_path: Path) -> None:
    assert init(tmp_path, "--brokers", "a,b", "--hosts", "a,b,db.example") == 0
    assert init(tmp_path, "--brokers", "c", "--hosts", "a,c") == 0
    proved = {}
    for name in "abc":
        certificate = x509.load_pem_x509_certificate((tmp_path / f"{name}.pem").read_bytes())
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        proved[name] = set(names.get_values_for_type(x509.DNSName)) - {"localhost"}
    assert proved == {"a": {"a", "db.example"}, "b": {"b", "db.example"}, "c": {"c"}}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--brokers", ","), "names each broker"),
        (("--brokers", "ca"), "none of ca"),
        (("--brokers", "../a"), "is no name"),
        (("--brokers", "a", "--days", "0"), "from 1 to"),
    ],
)
def test_what_is_refused(words: tuple[str, ...], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert init(tmp_path, *words) == 2
    assert text in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_authority_without_its_key_signs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert init(tmp_path, "--brokers", "a") == 0
    (tmp_path / "ca.key").unlink()
    assert init(tmp_path, "--brokers", "b") == 2
    assert "bring it back" in capsys.readouterr().err
    (tmp_path / "ca.key").write_bytes((tmp_path / "a.key").read_bytes())
    assert init(tmp_path, "--brokers", "b") == 2
    assert "not the key of" in capsys.readouterr().err
