"""Every file that a command writes: into a device, a pipe, through a link, over a file that is there."""

from __future__ import annotations

import errno
import importlib
import inspect
import itertools
import sys
import typing
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from schedgym import cli
from schedgym.board.suites import Suite
from schedgym.cli.common import application
from schedgym.evaluation import bench
from tests.agents.test_cli import SMALL as TRAINING
from tests.commands import refused
from tests.evaluation.test_sweep_cli import SPEC
from tests.long import some
from tests.special import SPECIAL
from tests.tables import entry

ID = "schedgym/QueueDelay-v0"
LOG = "submit,duration,cpus\n0,5,1\n1,5,2\n2,9,1\n3,4,1\n4,4,2\n5,7,1\n"
SIZE = ["--tasks", "5", "--servers", "2", "--n-jobs", "1"]
OUTPUTS, OTHERS, READ = (entry(__file__, name) for name in ("OUTPUTS", "OTHERS", "READ"))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of a small sweep."""
    folder = tmp_path_factory.mktemp("store")
    (folder / "sweep.yaml").write_text(SPEC)
    assert cli.main(["sweep", str(folder / "sweep.yaml"), "--n-jobs", "1"]) == 0
    return folder / "sweep.db"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Path) -> Path:
    """The current folder, with what the commands read; sets have two instances, nothing is measured."""
    monkeypatch.chdir(tmp_path)
    every = Suite.instances
    monkeypatch.setattr(Suite, "instances", lambda *asked: every(*asked)[:2])
    monkeypatch.setattr(bench, "chosen", lambda name: iter(()))
    Path("log.csv").write_text(LOG)
    Path("mine.yaml").write_text("name: mine\ncolumns: {submit: submit, duration: duration, cpus: cpus}\n")
    Path("training.yaml").write_text(TRAINING)
    Path("sweep.yaml").write_text(SPEC)
    Path("store.db").write_bytes(store.read_bytes())
    return tmp_path


def paths_of_commands() -> Iterator[str]:
    """The arguments and options of all commands that name a file or a folder."""
    for module in cli.COMMANDS:
        importlib.import_module(f"schedgym.cli.{module}")
    groups: list[tuple[str, typer.Typer]] = [("", application)]
    groups += [(f"{one.name} ", one.typer_instance) for one in application.registered_groups]
    for group, app in groups:
        for command in app.registered_commands:
            assert command.callback is not None
            for name, parameter in inspect.signature(command.callback).parameters.items():
                kind, *told = typing.get_args(parameter.annotation) or (parameter.annotation,)
                if kind is Path or Path in typing.get_args(kind):
                    # in an annotation typer takes the first name of an option for its default
                    flags = [flag for one in told for flag in (one.default, *(one.param_decls or ()))]
                    flag = next((flag for flag in flags if str(flag).startswith("--")), name)
                    yield f"{group}{command.name} {flag}"


def test_no_output_is_forgotten() -> None:
    named = {
        f"{' '.join(word for word in command.split()[:2] if word[0] != '-')} {flag}"
        for table in (OUTPUTS, OTHERS)
        for command, (_, files) in table.items()
        for flag in files
    }
    found = set(paths_of_commands())
    assert len(found) > 20 and found == named | {*READ}


@pytest.mark.parametrize(("command", "kind"), some(itertools.product(OUTPUTS, SPECIAL), of=3, late=2))
def test_an_output_leaves_what_stands_there(folder: Path, command: str, kind: str) -> None:
    pytest.importorskip("plotly")
    arguments, files = OUTPUTS[command]
    checks = {name: SPECIAL[kind](folder / name) for name in files.values()}
    assert cli.main([*command.split(), *arguments, *(word for pair in files.items() for word in pair)]) == 0
    for name, check in checks.items():
        written = check()
        assert kind == "device" or len(written) > 50, name


@pytest.mark.parametrize("command", some((name for name in OUTPUTS if name not in ("train", "bench")), of=3))
def test_files_are_written_before_anything_is_printed(
    folder: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that they are there although whoever reads what is printed has gone."""
    pytest.importorskip("plotly")
    arguments, files = OUTPUTS[command]

    def is_closed(text: str) -> int:
        if text:
            raise BrokenPipeError(errno.EPIPE, "closed")
        return 0

    monkeypatch.setattr(sys.stdout, "write", is_closed)
    try:
        code = cli.main([*command.split(), *arguments, *(word for pair in files.items() for word in pair)])
    except SystemExit as left:  # rich's
        code = left.code
    assert code == 1 and not [name for name in files.values() if not (folder / name).exists()]


@pytest.mark.parametrize("kind", ["device", "pipe"])
@pytest.mark.parametrize("command", OTHERS)
def test_a_store_or_a_folder_is_no_device(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str, kind: str
) -> None:
    arguments, files = OTHERS[command]
    ((flag, name),) = files.items()
    check = SPECIAL[kind](folder / name)
    error = refused(capsys, *command.split(), *arguments, flag, name)
    assert error.startswith(f"error: {name}: ")
    if kind == "pipe":
        (folder / name).write_bytes(b"for its reader")
    assert check() == (b"for its reader" if kind == "pipe" else b"")


@pytest.mark.parametrize("kind", ["link", "private file"])
@pytest.mark.parametrize("command", ["sweep", "tune"])
def test_a_store_is_written_where_its_name_leads(folder: Path, command: str, kind: str) -> None:
    arguments, files = OTHERS[command]
    ((flag, name),) = files.items()
    check = SPECIAL[kind](folder / name)
    assert cli.main([command, *arguments, flag, name]) == 0
    assert check().startswith(b"SQLite format 3")


REPLACED = entry(__file__, "REPLACED") + [
    [*command.split(), *arguments, flag, word]
    for table in (OUTPUTS, OTHERS)
    for command, (arguments, files) in table.items()
    for flag in files
    for word in arguments
    if word.endswith((".csv", ".yaml", ".db"))
]


@pytest.mark.parametrize("arguments", REPLACED, ids=" ".join)
def test_no_output_replaces_an_input_or_another_output(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    Path("link.csv").symlink_to("log.csv")
    refused(capsys, *arguments)
