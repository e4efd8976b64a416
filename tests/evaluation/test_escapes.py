"""Texts of files and labels: they command no terminal and no spreadsheet."""

import csv

import numpy as np
import pytest

from schedgym.cli import main
from schedgym.errors import LONGEST, one_line, printable
from schedgym.evaluation.export import export
from schedgym.evaluation.store import Line, ResultsStore, Setting, Unit
from schedgym.evaluation.wording import make_console

ESCAPE = "\x1b]0;title\x07\x1b[2J\x9b31m\x7f\u202egnp.exe"
SHOWN = r"\x1b]0;title\x07\x1b[2J\x9b31m\x7f\u202egnp.exe"


def dangerous(text):
    return [
        c for c in text if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160 or 0x202A <= ord(c) <= 0x202E)
    ]


def test_what_is_printable_stays_and_the_rest_is_shown():
    assert printable("Größe → 5 µs\n中") == "Größe → 5 µs\n中"
    assert printable(ESCAPE) == SHOWN
    assert not any(dangerous(printable(chr(code))) for code in range(0x3000))


def test_the_console_prints_no_command(capsys):
    from schedgym.cli.common import make_table, say

    say(f"[bold]{ESCAPE}")
    make_console().print(make_table(ESCAPE, ("a" + ESCAPE,), [(ESCAPE,)]))
    say(ESCAPE, stderr=True)
    found = capsys.readouterr()
    assert not dangerous(found.out + found.err)
    assert found.out.count(SHOWN) == 4 and f"[bold]{SHOWN}" in found.out and SHOWN in found.err


@pytest.mark.parametrize(
    "command",
    [
        ["describe", ESCAPE],
        ["run", "schedgym/QueueDelay-v0", "--policy", "fcfs", "--workload", f"{ESCAPE}.json"],
        ["compare", "schedgym/QueueDelay-v0", "--policies", ESCAPE],
        ["sweep", "names.yaml"],
        ["report", ESCAPE],
        [ESCAPE],
    ],
)
def test_errors_are_one_short_line_without_commands(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    text = (
        ESCAPE.replace("\x1b", "\\e").replace("\x07", "\\a").replace("\x9b", "\\x9b").replace("\x7f", "\\x7f")
    )
    (tmp_path / "names.yaml").write_text(f'name: x\nexperiments: [{{id: "{text}", policies: [a]}}]\n')
    assert main(command) == 2
    error = capsys.readouterr().err
    assert not dangerous(error) and error.startswith("error: ") and error.count("\n") == 1


def test_a_long_error_is_cut(capsys):
    assert main(["describe", "x" * 5000 + "end"]) == 2
    error = capsys.readouterr().err
    assert len(error) <= LONGEST + 10 and " ... " in error and error.count("\n") == 1


def test_failures_and_remarks_are_cleaned(tmp_path, capsys):
    """What ``sweep`` and ``report`` say of a unit."""
    pytest.importorskip("plotly")
    where = Setting("queue-delay", "schedgym/QueueDelay-v0", {}, "mean_delay", "min", "1")
    with ResultsStore(tmp_path / "r.db", "w") as store:
        line = Line(where, ESCAPE, {"policy": ESCAPE}, None, "digest")
        store.add(Unit(line, 0, 0, 1), ["mean_delay"], np.ones((1, 1)))
    assert not main(["report", str(tmp_path / "r.db")])
    found = capsys.readouterr()
    assert SHOWN in found.err and not dangerous(found.out + found.err)


LABELS = {
    "=cmd|'/c calc'!A1": "'=cmd|'/c calc'!A1",
    "+1+cmd": "'+1+cmd",
    "-x": "'-x",
    "@SUM(A1)": "'@SUM(A1)",
    "\tx\n": r"\tx\n",
    "bf=exec": "bf=exec",
    "-1.5": "-1.5",
}


@pytest.mark.parametrize("table", ["episodes", "leaderboard"])
def test_no_cell_of_a_table_is_a_formula(tmp_path, table):
    where = Setting("queue-delay", "schedgym/QueueDelay-v0", {"x": "=1+1"}, "mean_delay", "min", "1")
    with ResultsStore(tmp_path / "r.db", "w") as store:
        for label in LABELS:
            line = Line(where, label, {"policy": "fcfs"}, None, label)
            store.add(Unit(line, 0, 0, 1), ["mean_delay"], -np.ones((1, 1)))
    export(tmp_path / "r.db", tmp_path / "r.csv", table=table)
    with open(tmp_path / "r.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["policy"] for row in rows} == set(LABELS.values())
    assert {row["x"] for row in rows} == {"'=1+1"}
    value = "value" if table == "episodes" else "mean"
    assert float(rows[0][value]) == -1.0
