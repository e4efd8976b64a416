"""One verdict for each statement of a paper, from its claims and from the figures that show them."""

from __future__ import annotations

import json

import pytest

from schedgym.papers import (
    PAPERS,
    Finding,
    Outcome,
    Panel,
    Paper,
    Series,
    Verdict,
    figure,
    list_claims,
    list_figures,
    verdicts,
)
from schedgym.papers.main import print_claims
from schedgym.papers.readings import KINDS, OpenPoint, kind_of, points_of
from schedgym.papers.verdicts import Shown, count_row, statements
from tests.papers.recorded import enter_claim

PAPER = Paper("nn2000", "a paper", "A paper", "Nobody", "Nowhere", ())
START = OpenPoint("start", "it starts", "where", {"at one": 1, "at zero": 0}, "at one")
HOLDS, PART, NOT = Verdict.HOLDS, Verdict.IN_PART, Verdict.NOT_REPRODUCED


@pytest.fixture
def own(empty):
    """A paper with two claims, one of them ours, and three figures, the second beside the first."""
    row = {"name": "a", "text": "a is better", "recorded": ["not reproduced", "in part"]}
    enter_claim(PAPER, row, lambda run: Finding(PART if run.choice(START) == 0 else NOT, "seen"), (START,))
    row = {"name": "b", "text": "a is better", "ours": True}
    enter_claim(PAPER, row, lambda run: Finding(HOLDS, "seen"))
    panel = Panel("x", "y", [Series("a", ["u"], [1])], kind="bars")
    for name, beside in (("fig1", ""), ("fig2", "fig1"), ("fig3", "")):
        figure(PAPER, name, title=name, source=name, beside=beside)(lambda run: Outcome([panel], [], ""))


def show(monkeypatch, *shown: Shown) -> None:
    monkeypatch.setattr(verdicts, "shown_by_figures", lambda: shown)


def test_figures_count_before_the_recorded_verdict_by_default(own, monkeypatch) -> None:
    show(monkeypatch)
    (said,) = statements(PAPER)
    assert said.verdict == "in part under at zero" and said.name == "nn2000/a"
    show(monkeypatch, Shown("nn2000/fig1", "paper", "a", "nn2000/a", {"at one": HOLDS, "at zero": NOT}))
    (said,) = statements(PAPER)
    # what a figure shows under another reading is not asked: it may have been made at the small scale
    assert said.readings == {"at one": HOLDS, "at zero": PART} and said.verdict == "holds"


def test_a_statement_on_two_figures_counts_once(own, monkeypatch) -> None:
    """The second one is of a trace beside the first, and was written without the name of the claim."""
    first = Shown("nn2000/fig1", "paper", "a", "nn2000/a", {"at one": HOLDS})
    for verdict, both in ((HOLDS, HOLDS), (NOT, PART), (PART, PART)):
        show(monkeypatch, first, Shown("nn2000/fig2", "small", "a", "", {"at one": verdict}))
        (said,) = statements(PAPER)
        assert said.readings["at one"] == both and len(said.shown) == 2


def test_statements_without_a_claim(own, monkeypatch) -> None:
    """Of figures that are beside one another a sentence is one, of others two."""
    names = ("fig1", "fig2", "fig3")
    show(monkeypatch, *(Shown(f"nn2000/{name}", "small", "c", "", {"": HOLDS}) for name in names))
    _, *shown = statements(PAPER)
    assert [[own.figure for own in said.shown] for said in shown] == [
        ["nn2000/fig1", "nn2000/fig2"],
        ["nn2000/fig3"],
    ]
    assert count_row(PAPER)[1:] == ["3", "2", "0", "0", "1", "0", "0", "0", "0", "1"]


def test_readings_of_several_figures_are_put_together(own, monkeypatch) -> None:
    show(
        monkeypatch,
        Shown("nn2000/fig1", "small", "c", "", {"at one": NOT, "at zero": HOLDS}),
        Shown("nn2000/fig2", "small", "c", "", {"at one": NOT, "at zero": NOT}),
    )
    _, said = statements(PAPER)
    assert said.readings == {"at one": NOT, "at zero": PART} and said.verdict == "in part under at zero"


def test_the_command_prints_the_counts(own, monkeypatch, capsys) -> None:
    show(monkeypatch, Shown("nn2000/fig1", "paper", "a", "nn2000/a", {"at one": HOLDS}))
    assert print_claims() == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "in part under at zero; with its figures: holds" in text
    assert "nn2000 (a paper) 1 1 0 0 0 0 0 0 0 1" in text
    assert print_claims(["nn2000/a"]) == 0  # the counts are of whole papers
    assert "nn2000 (a paper)" not in capsys.readouterr().out


def test_a_verdict_of_the_run_counts_where_no_figure_shows_the_claim(own, monkeypatch) -> None:
    show(monkeypatch)
    found = {"nn2000/a": {"at one": PART, "at zero": NOT}}
    assert [said.verdict for said in statements(PAPER, found)] == ["in part"]


def test_the_committed_verdicts() -> None:
    """Every statement of a figure is there once, under a name that is registered."""
    rows = json.loads(verdicts.COMMITTED.read_text(encoding="utf-8"))
    assert [row["figure"] for row in rows] == [entry.name for entry in list_figures()]
    known = {entry.name for entry in list_claims()}
    for paper in PAPERS:
        shown = statements(paper)
        names = [said.name for said in shown if said.name]
        assert names == [entry.name for entry in list_claims(paper.key) if not entry.ours]
        places = [(own.figure, own.text) for said in shown for own in said.shown]
        own = [shown for shown in verdicts.shown_by_figures() if shown.figure.startswith(f"{paper.key}/")]
        assert sorted(places) == sorted((entry.figure, entry.text) for entry in own)
        assert all(kind_of(said.verdict) in KINDS for said in shown)
        assert all(entry.name in known for entry in own if entry.name)


#: open points whose default another choice surpasses, and why it stays
STAYS = {
    "threshold of the MAR test": "one statement is judged under both, all online runs would change with it",
    "balance": "what Figs. 4.4 and 5.1 plot is the slots as they are occupied",
}


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.key)
def test_defaults_are_the_readings_under_which_the_statements_hold_best(paper) -> None:
    """The rule of the glossary, over claims and figures, with the defaults at the other open points."""
    worth = {Verdict.HOLDS: 2, Verdict.IN_PART: 1}
    found = [(entry, entry.recorded) for entry in list_claims(paper.key)]
    entries = {entry.name: entry for entry in list_figures(paper.key)}
    found += [
        (entries[own.figure], own.readings) for own in verdicts.shown_by_figures() if own.figure in entries
    ]
    for point in points_of(paper.key).values():
        scores = dict.fromkeys(point.choices, 0)
        for entry, recorded in found:
            others = [other for other in entry.under if other != point]
            compared = {
                words: reading[point.name]
                for words, reading in entry.readings.items()
                if point in entry.under and all(reading[other.name] == other.default for other in others)
            }
            if recorded.keys() >= compared.keys():  # at the paper's size some figures have the default alone
                for words, choice in compared.items():
                    scores[choice] += worth.get(recorded[words], 0)
        best = [choice for choice, score in scores.items() if score == max(scores.values())]
        assert (point.default in best) == (point.name not in STAYS), (point.name, scores)
