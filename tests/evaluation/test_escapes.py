"""Texts of files and labels: they command no terminal and no spreadsheet, and are no formulas in pictures."""

import csv
import html
import itertools
import json
import xml.etree.ElementTree as ElementTree

import gymnasium
import matplotlib
import numpy as np
import pytest

from schedgym.cli import main
from schedgym.core import policy as registry
from schedgym.core.policy import list_policies
from schedgym.errors import LONGEST, one_line, printable
from schedgym.evaluation import canvas, plot
from schedgym.evaluation.export import export
from schedgym.evaluation.runner import compare
from schedgym.evaluation.store import Line, ResultsStore, Setting, Unit
from schedgym.evaluation.wording import make_console, make_table
from tests.commands import refused
from tests.long import some
from tests.tables import entry, table

ID = "schedgym/QueueDelay-v0"
ESCAPE = "\x1b]0;title\x07\x1b[2J\x9b31m\x7f\u202egnp.exe"
SHOWN = r"\x1b]0;title\x07\x1b[2J\x9b31m\x7f\u202egnp.exe"
#: besides commands, what matplotlib, rich and HTML would take for their own
NAME = rf"a$\foo{{$^2__b l_k [red][/x]:bomb:<b>&amp;{ESCAPE}"
NAME_SHOWN = rf"a$\foo{{$^2__b l_k [red][/x]:bomb:<b>&amp;{SHOWN}"


def dangerous(text):
    return [
        c for c in text if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160 or 0x202A <= ord(c) <= 0x202E)
    ]


def test_what_is_printable_stays_and_the_rest_is_shown():
    assert printable("Größe → 5 µs\n中") == "Größe → 5 µs\n中"
    assert printable(ESCAPE) == SHOWN
    assert not any(dangerous(printable(chr(code))) for code in range(0x3000))


def test_the_console_prints_no_command(capsys):
    from schedgym.cli.common import say

    say(f"a\n{NAME}")
    make_console().print(make_table(NAME, (NAME,), [(NAME,), (f"{NAME}\n",)]))
    make_console().print(NAME)
    say(NAME, stderr=True)
    found = capsys.readouterr()
    assert not dangerous(found.out + found.err)
    assert found.out.count(NAME_SHOWN) == 6 and found.err.count(NAME_SHOWN) == 1
    assert rf"a\n{NAME_SHOWN}" in found.out and rf"{NAME_SHOWN}\n" in found.out


@pytest.mark.parametrize("command", table(__file__, "REFUSED"))
def test_errors_are_one_short_line_without_commands(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    text = (
        ESCAPE.replace("\x1b", "\\e").replace("\x07", "\\a").replace("\x9b", "\\x9b").replace("\x7f", "\\x7f")
    )
    (tmp_path / "names.yaml").write_text(f'name: x\nexperiments: [{{id: "{text}", policies: [a]}}]\n')
    assert not dangerous(refused(capsys, *(word.replace("ESCAPE", ESCAPE) for word in command)))


def test_a_long_error_is_cut(capsys):
    error = refused(capsys, "describe", "x" * 5000 + "end")
    assert len(error) <= LONGEST + 10 and " ... " in error


def test_failures_and_remarks_are_cleaned(tmp_path, capsys):
    """What ``sweep`` and ``report`` say of a unit."""
    pytest.importorskip("plotly")
    where = Setting("queue-delay", "schedgym/QueueDelay-v0", {}, "mean_delay", "min", "1")
    with ResultsStore(tmp_path / "r.db", "w") as store:
        line = Line(where, NAME, {"policy": NAME}, None, "digest")
        store.add(Unit(line, 0, 0, 1), ["mean_delay"], np.ones((1, 1)))
    assert not main(["report", str(tmp_path / "r.db")])
    found = capsys.readouterr()
    assert SHOWN in found.err and not dangerous(found.out + found.err)
    page, _, scripts = (tmp_path / "r.html").read_text().partition('<script type="application/json"')
    plots = json.loads(scripts.partition(">")[2].partition("</script>")[0])
    for text in (html.unescape(page), json.dumps(plots, ensure_ascii=False)):
        assert not dangerous(text)
    assert NAME_SHOWN in html.unescape(page) and NAME_SHOWN in html.unescape(str(plots)).replace(r"\\", "\\")


LABELS = {**entry(__file__, "LABELS"), ESCAPE: SHOWN}


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
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    export(tmp_path / "r.db", tmp_path / "r.parquet", table=table)
    frame = pandas.read_parquet(tmp_path / "r.parquet")
    assert set(frame["policy"]) == {one_line(label) for label in LABELS} and set(frame["x"]) == {"=1+1"}


def texts_of(svg):
    """All texts of a picture."""
    return [text for text in ElementTree.fromstring(svg).itertext() if text.strip()]


@pytest.fixture
def letters(monkeypatch):
    """SVG pictures hold texts, not the outlines of their letters."""
    monkeypatch.setitem(matplotlib.rcParams, "svg.fonttype", "none")


NAMES = [NAME, "$", "a$b", "$x$", r"\$", "$a$$", r"$\frac{$", "l__ x^_", r"\l_k q\w{ \l_k"]


@pytest.mark.parametrize("parameters", some([{}, {"servers": [2, 3], "normalize": [False, True]}]))
def test_a_name_is_no_formula_in_a_comparison(tmp_path, letters, parameters):
    policies = dict(zip(NAMES, itertools.cycle(["fcfs", "ff"]), strict=False))
    found = compare("QueueDelay-v0", policies, parameters, 2, parameters={"tasks": 5})
    how = {"reference": NAME, "title": "".join(NAMES), "subtitle": "".join(NAMES)}
    for file in ("wide.svg", "wide.png", "narrow.svg"):
        plot.plot_comparison(found, tmp_path / file, width=3.5 if "narrow" in file else 11, **how)
    texts = texts_of((tmp_path / "wide.svg").read_text())
    assert not dangerous("".join(texts))
    assert all(any(one_line(name) in text for text in texts) for name in NAMES)


def test_formulas_of_our_own_stay(letters):
    figure = canvas.new_figure(9, 3)
    canvas.add_head(figure, "l_k norm [slots^k], a$b", "x^2 $")
    texts = texts_of(canvas.svg_text(figure, svg_fonttype="none"))
    assert "x^2 $" in texts and "ℓ" in "".join(texts)


def test_a_caption_commands_no_terminal():
    env = gymnasium.make(ID, render_mode="ansi", disable_env_checker=True).unwrapped
    env.caption = f"{NAME}\nserver 0"
    env.reset(seed=0)
    assert env.render().startswith(rf"{NAME_SHOWN}\nserver 0")
    assert not dangerous(env.render())


FILE = NAME.replace("/", "")  # of a file, a name may have all of it
FILE_SHOWN = NAME_SHOWN.replace("/", "")


@pytest.fixture
def named(tmp_path, monkeypatch):
    """A policy and a log in files of this name."""
    list_policies()
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"{FILE}.py").write_text(
        """
class First:
    def reset(self, interface, rng):
        pass

    def __call__(self, observation):
        return int(observation["action_mask"].nonzero()[0][0])

    def acting_parameters(self, id, given):
        return {**given, "view": "pick", "action_mask": True}
"""
    )
    (tmp_path / f"{FILE}.csv").write_text("submit,duration,cpus\n0,5,1\n1,5,2\n2,9,1\n3,4,1\n4,4,2\n5,7,1\n")
    return tmp_path


@pytest.mark.parametrize("line", table(__file__, "COMMANDS"), ids=lambda line: line.split()[0])
def test_the_name_of_a_file_reaches_all_outputs_unharmed(named, letters, capsys, line):
    pytest.importorskip("jinja2")
    assert main([word.format(ID=ID, FILE=FILE) for word in line.split()]) == 0
    found = capsys.readouterr()
    assert not dangerous(found.out + found.err) and FILE_SHOWN in found.out
    written = [path for path in named.glob("o.*") if path.suffix != ".gif"]
    for path in written:
        text = path.read_text()
        assert not dangerous(text), path
        if path.suffix == ".json":
            assert json.loads(text)["reference"] == f"{FILE}:First"
        else:
            assert FILE_SHOWN in (text if path.suffix == ".csv" else html.unescape(text)), path
    assert written
