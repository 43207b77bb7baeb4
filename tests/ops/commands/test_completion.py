"""`completion`: the shell offers what the parser takes, at every place of the command line."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from headgate.ops.cli import VERBS, main

ASK = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _headgate; printf "%s\\n" "${COMPREPLY[@]}"'


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
@pytest.mark.slow
def test_bash_offers_what_the_parser_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "headgate.bash"
    file.write_text(script("bash", capsys))

    def offered(*words: str) -> list[str]:
        command = ["bash", "-c", ASK, "bash", str(file), "headgate", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return done.stdout.split()

    assert set(VERBS) <= set(offered(""))
    assert offered("su") == ["sub", "subs"]
    assert offered("--server", "h:1", "stat") == ["status"]
    assert offered("subs", "--br") == ["--broker"]
    assert {"put", "get", "list", "rm"} <= set(offered("schema", ""))
    assert offered("schema", "rm", "--pu") == ["--purge"]
    assert offered("pub", "a/b", "--mode", "s") == ["stored"]
    assert offered("sub", "--config", "") == [], "a value that can be anything is left to the file names"
    assert "compare" in offered("bench", "")
    assert offered("completion", "")[:3] == ["bash", "zsh", "fish"]
    assert {"ring", "--nodes", "--log"} <= set(offered("simulate", ""))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_names_every_verb_and_has_the_form_of_its_shell(
    shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = script(shell, capsys)
    assert all(verb in text for verb in VERBS)
    program = shutil.which(shell)
    if program is not None:
        file = tmp_path / "script"
        file.write_text(text)
        subprocess.run([program, "-n", str(file)], check=True)


def test_a_shell_that_is_not_known_is_a_usage_error() -> None:
    with pytest.raises(SystemExit) as caught:
        main(["completion", "csh"])
    assert caught.value.code == 2
