"""What is shipped: wheel and source archive, built, installed beside hostile neighbours and used as a stranger would.

Nothing here sees this repository's own environment but by a `.pth` that shares its dependencies.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import msgpack
import pytest

import headgate
from headgate.protocol.blocking import connect_blocking
from tests.support.served_broker import free_address, served_broker
from tests.system.processes import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SECONDS_MAX = 120.0
ROOMS = ("broker", "matching", "ops", "protocol")
LEFT_BEHIND = (".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "*.egg-info", "build", "dist")
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


def run(words: Sequence[object], folder: Path, text: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    """A command in that folder, in an environment in which nothing points here."""
    ours = ("HEADGATE_", "PYTHONPATH", "VIRTUAL_ENV", "PYSPARK_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)} | more
    return subprocess.run(
        [str(word) for word in words],
        input=text,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        env=clean,
        cwd=folder,
        check=False,
    )


def done(words: Sequence[object], folder: Path, **more: str) -> str:
    """The same, which must succeed; its output."""
    found = run(words, folder, **more)
    assert found.returncode == 0, f"{words}\n{found.stdout[-2000:]}\n{found.stderr[-3000:]}"
    return found.stdout


def clean_copy(folder: Path) -> Path:
    """The tree as somebody gets it who clones it, without tests."""
    return Path(shutil.copytree(ROOT, folder, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_BEHIND)))


def wheel_of(source: object, folder: Path) -> Path:
    done([*PIP, "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, source], folder.parent)
    (wheel,) = folder.glob("*.whl")
    return wheel


def contents(wheel: Path) -> dict[str, int]:
    """Name -> checksum of what would be installed."""
    with zipfile.ZipFile(wheel) as packed:
        return {one.filename: one.CRC for one in packed.infolist() if not one.filename.endswith("/RECORD")}


def site_of(package: ModuleType) -> Path:
    assert package.__file__
    return Path(package.__file__).parent.parent


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The setuptools that pyproject.toml asks for; skips where there is no index to get it from."""
    folder = tmp_path_factory.mktemp("tools")
    found = run([*PIP, "install", "--quiet", "--no-deps", "--target", folder, "setuptools>=77"], folder)
    if found.returncode:
        pytest.skip("needs an index that has setuptools, to build")
    return folder


@pytest.fixture(scope="module")
def tree(tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return clean_copy(tmp_path_factory.mktemp("source") / "headgate")


@pytest.fixture(scope="module")
def wheel(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel") / "dist"
    folder.mkdir()
    return wheel_of(tree, folder)


@dataclass
class Installed:
    """An environment with the wheel in it, and a working directory full of packages with our rooms' names."""

    folder: Path
    work: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def command(self) -> Path:
        return self.folder / "bin" / "headgate"

    @property
    def site(self) -> Path:
        (found,) = self.folder.glob("lib/python*/site-packages")
        return found


def environment_with(wheel: Path, folder: Path) -> Installed:
    installed = Installed(folder / "venv", folder / "work")
    installed.work.mkdir()
    done([sys.executable, "-m", "venv", "--without-pip", installed.folder], folder)
    for place in (installed.site, installed.work):
        for room in ROOMS:  # they were there before, and are nobody's business of ours
            (place / room).mkdir()
            (place / room / "__init__.py").write_text(f"raise ImportError('the neighbours {room} was imported')\n")
    os.symlink(Path(msgpack.__file__).parent, installed.site / "msgpack")
    done([*PIP, "--python", installed.python, "install", "--quiet", "--no-deps", wheel], folder)
    return installed


@pytest.fixture(scope="module")
def client(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """As after `pip install headgate`: msgpack and nothing else."""
    return environment_with(wheel, tmp_path_factory.mktemp("client"))


@pytest.fixture(scope="module")
def full(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """As after `pip install 'headgate[broker]'`."""
    installed = environment_with(wheel, tmp_path_factory.mktemp("full"))
    (installed.site / "zz_shared.pth").write_text(f"{site_of(msgpack)}\n")
    return installed


# --- what is built ---------------------------------------------------------------------------------------------------


def test_the_wheel_has_every_file_of_the_rooms_and_no_bare_name(wheel: Path) -> None:
    found = {name for name in contents(wheel) if ".dist-info/" not in name}
    assert {name.split("/")[0] for name in found} == {"headgate", "pyspark_headgate.py"}
    kinds = {".py", ".md", ".json", ".yml", ".yaml", ".service", ".lark"}
    files = [path for room in ROOMS for path in (ROOT / room).rglob("*") if path.suffix in kinds]
    wanted = {f"headgate/{path.relative_to(ROOT).as_posix()}" for path in files if "__pycache__" not in path.parts}
    assert found == wanted | {"headgate/__init__.py", "headgate/py.typed", "pyspark_headgate.py"}


def test_a_source_archive_and_a_repository_give_the_same_wheel(
    tools: Path, tree: Path, wheel: Path, tmp_path: Path
) -> None:
    hook = "import sys, setuptools.build_meta as backend; print(backend.build_sdist(sys.argv[1]))"
    done([sys.executable, "-c", hook, tmp_path / "sdist"], tree, PYTHONPATH=str(tools))
    (archive,) = (tmp_path / "sdist").glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        members = packed.getmembers()
    assert not [one.name for one in members if one.issym() or one.islnk()], "links do not survive everywhere"
    assert not [one.name for one in members if "/tests" in one.name]
    for name, source in {"from-sdist": archive, "from-git": f"git+{clone(tmp_path).as_uri()}"}.items():
        folder = tmp_path / name
        folder.mkdir()
        assert contents(wheel_of(source, folder)) == contents(wheel), name


def clone(folder: Path) -> Path:
    """A repository with the tree in it, links as links."""
    copy = clean_copy(folder / "repository")
    git = ("git", "-c", "user.name=ann", "-c", "user.email=ann@example.org")
    for words in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "--message", "the tree")):
        done([*git, *words], copy)
    return copy


# --- the client alone ------------------------------------------------------------------------------------------------


def test_a_client_needs_msgpack_and_meets_no_neighbour(client: Installed) -> None:
    told = done([client.python, "-c", "import headgate, sys; print(headgate.__version__, *sys.modules)"], client.work)
    version, *modules = told.split()
    assert version == headgate.__version__
    assert not [name for name in modules if name.startswith(("headgate.broker", "headgate.ops", "headgate.matching"))]
    assert "asyncio" in modules and "msgpack" in modules
    place = done([client.python, "-c", "import headgate; print(headgate.__file__)"], client.work)
    assert Path(place.strip()).is_relative_to(client.site)


@pytest.mark.parametrize("words", [["serve"], ["audit"], ["bench"], ["demo"], ["simulate"]])
def test_the_command_without_its_extra_says_what_to_install(client: Installed, words: list[str]) -> None:
    found = run([client.command, *words], client.work)
    assert (found.returncode, found.stdout) == (2, ""), found.stderr
    assert re.fullmatch(
        r"headgate: the package \w+ is not installed: pip install 'headgate\[broker\]'\n", found.stderr
    ), found.stderr


def test_the_daemon_without_its_extra_says_what_to_install(client: Installed) -> None:
    found = run([client.python, "-m", "headgate.broker"], client.work)
    assert found.returncode == 2 and "pip install 'headgate[broker]'" in found.stderr
    assert len(found.stderr.splitlines()) == 1


def test_a_client_talks_to_a_broker(client: Installed, tmp_path: Path) -> None:
    program = """
import sys, headgate
with headgate.connect_blocking(sys.argv[1]) as client:
    dear = client.subscribe("quotes", where="price > 8.5")
    client.publish("quotes/OTE", {"price": 9.0}, "dear")
    for event in dear.events(seconds=20):
        print(event.text)
        break
"""
    with served_broker(tmp_path) as broker:
        assert done([client.python, "-c", program, broker.address], client.work) == "dear\n"


# --- with the broker -------------------------------------------------------------------------------------------------


@pytest.fixture
def served(full: Installed, tmp_path: Path) -> Iterator[str]:
    """The address of a broker that runs from the wheel, in a folder full of neighbours."""
    address = free_address()
    places = ("--listen", address, "--peer-listen", free_address(), "--admin", free_address())
    command = [str(full.command), "serve", *places, "--data", str(tmp_path / "data")]
    with (tmp_path / "broker.log").open("wb") as log:
        process = subprocess.Popen(command, stderr=log, cwd=full.work)
    try:
        with connect_blocking(address, wait_seconds=30.0):
            yield address
    finally:
        process.terminate()
        process.wait(30)


def test_the_command_works_from_any_folder(full: Installed, served: str) -> None:
    words = ["sub", "quotes", "--where", "price > 8", "--count", "1", "--json", "--server", served]
    reader = subprocess.Popen(
        [str(full.command), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=full.work
    )
    assert reader.stderr is not None and reader.stderr.readline() == "subscribed\n"
    for price in (7, 9):
        done([full.command, "pub", "quotes/OTE", "--attr", f"price={price}", "--server", served], full.work)
    out, _ = reader.communicate(timeout=30)
    assert reader.returncode == 0 and '"price":9' in out and len(out.splitlines()) == 1


def test_the_daemon_starts_as_a_module_and_stops_on_a_signal(full: Installed, tmp_path: Path) -> None:
    address = free_address()
    settings = {"LISTEN": address, "PEER_LISTEN": free_address(), "ADMIN": free_address(), "DATA": str(tmp_path / "d")}
    given = {f"HEADGATE_{name}": value for name, value in settings.items()}
    command = [str(full.python), "-m", "headgate.broker"]
    with (tmp_path / "broker.log").open("wb") as log:
        process = subprocess.Popen(command, stderr=log, cwd=full.work, env=os.environ | given)
    with connect_blocking(address, wait_seconds=30.0):
        process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0


def test_every_module_of_the_wheel_can_be_imported(full: Installed) -> None:
    program = """
import importlib, pkgutil, sys
import headgate
names = [one.name for one in pkgutil.walk_packages(headgate.__path__, "headgate.") if "__main__" not in one.name]
for name in names:
    importlib.import_module(name)
print(len(names), *sorted({"broker", "matching", "ops", "protocol"} & sys.modules.keys()))
"""
    count, *bare = done([full.python, "-c", program], full.work).split()
    assert int(count) > 300 and not bare


def test_the_unit_of_systemd_starts_what_the_wheel_installs(full: Installed) -> None:
    unit = (full.site / "headgate/ops/systemd/headgate.service").read_text(encoding="utf-8")
    (started,) = re.findall(r"^ExecStart=/opt/headgate/bin/(\w+) serve ", unit, flags=re.MULTILINE)
    assert (full.folder / "bin" / started).is_file()


# --- types -----------------------------------------------------------------------------------------------------------


def test_a_type_checker_sees_our_types(client: Installed, tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    programs = [text for text in re.findall(r"^```python\n(.*?)^```", readme, re.M | re.S) if "import headgate" in text]
    assert len(programs) == 3
    for number, text in enumerate(programs):
        (tmp_path / f"readme_{number}.py").write_text(text, encoding="utf-8")
    check = [sys.executable, "-m", "mypy", "--strict", "--python-executable", client.python, "--cache-dir", "cache"]
    assert "no issues found in 2 source files" in done([*check, "readme_0.py", "readme_1.py"], tmp_path)
    (tmp_path / "wrong.py").write_text(
        "import headgate\n"
        "reveal_type(headgate.connect_blocking('h:1'))\n"
        "headgate.connect_blocking(7400)\n"
        "headgate.connect_blocking('h:1').publish('quotes', 5)\n"
    )
    found = run([*check, "wrong.py"], tmp_path)
    assert found.returncode == 1
    assert 'Revealed type is "headgate.protocol.blocking.client.BlockingClient"' in found.stdout
    assert len(re.findall(r"wrong\.py:[34]: error: Argument \d", found.stdout)) == 2, found.stdout


# --- an editable installation, and Spark -----------------------------------------------------------------------------


def test_spark_finds_the_source_of_an_editable_installation_from_any_folder(tree: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    if shutil.which("java") is None:
        pytest.skip("java is not installed")
    installed = Installed(tmp_path / "venv", tmp_path)
    done([sys.executable, "-m", "venv", "--without-pip", installed.folder], tmp_path)
    done([*PIP, "--python", installed.python, "install", "--quiet", "--no-deps", "--editable", tree], tmp_path)
    (installed.site / "zz_shared.pth").write_text(f"{site_of(msgpack)}\n")
    program = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
options = {"headgate.bootstrap.servers": sys.argv[1], "topic": "quotes"}
spark.range(5).write.format("headgate").mode("append").options(**options).save()
print("found", spark.read.format("headgate").options(**options).load().count())

import threading
def write():
    MANUAL
    spark.range(5).write.format("headgate").mode("append").options(**options).save()
thread = threading.Thread(target=write)
thread.start()
thread.join()
print("then found", spark.read.format("headgate").options(**options).load().count())
"""
    manual = (ROOT / "protocol/spark/MANUAL.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^spark\._jvm\..*$", manual, flags=re.MULTILINE)
    program = program.replace("MANUAL", line)
    with served_broker(tmp_path) as broker:
        broker.store("quotes")
        told = done(
            [installed.python, "-c", program, broker.address],
            tmp_path,
            PATH=f"{installed.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",  # as an activated environment has it
            SPARK_LOCAL_IP="127.0.0.1",
        )
    assert told == "found 5\nthen found 10\n"
