"""What is missing before Spark can run is said with what to install."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

from headgate.ops.jobs import missing_parts
from headgate.ops.jobs.audit_session import settle_session


def without(monkeypatch: pytest.MonkeyPatch, java: bool, pyspark: bool) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/java" if java else None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if pyspark else None)


def test_nothing_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, java=True, pyspark=True)
    assert missing_parts() == ""


def test_java_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, java=False, pyspark=True)
    assert "openjdk-17-jre-headless" in missing_parts() and "pip install" not in missing_parts()


def test_both_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, java=False, pyspark=False)
    assert "headgate[spark]" in missing_parts() and "Java 17" in missing_parts()


def test_a_java_home_counts_when_java_is_in_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without(monkeypatch, java=False, pyspark=True)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "Java 17" in missing_parts()
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.touch(mode=0o755)
    assert missing_parts() == ""


def test_a_session_of_somebody_else_gets_what_the_meaning_needs() -> None:
    class Settings(dict[str, str]):
        set = dict.__setitem__

    class Session:
        conf = Settings()

    assert settle_session(Session()).conf["spark.sql.caseSensitive"] == "true"
    assert Session.conf["spark.sql.session.timeZone"] == "UTC"
