"""Readings: claims and figures run under each choice that a paper leaves open, and the verdicts in one."""

from __future__ import annotations

import json

import pytest

from schedgym.errors import UnknownName
from schedgym.papers import (
    Finding,
    Judged,
    Outcome,
    Panel,
    Paper,
    Run,
    Series,
    Verdict,
    check_claims,
    figure,
    figures,
    registry,
)
from schedgym.papers.figures import judged_under, make_figure
from schedgym.papers.main import print_claims
from schedgym.papers.readings import KINDS, OpenPoint, count_verdicts, kind_of, readings_of, sum_up
from tests.papers.recorded import enter_claim
from tests.tables import table

PAPER = Paper("nn2000", "a paper", "A paper", "Nobody", "Nowhere", ())
START = OpenPoint("start", "it starts", "where", {"at zero": 0, "at one": 1}, "at one")
NORM = OpenPoint("norm", "a norm", "which", {"sum": "s", "largest": "l"}, "sum")
HOLDS, NOT = Verdict.HOLDS, Verdict.NOT_REPRODUCED

pytestmark = pytest.mark.usefixtures("empty")


def test_all_combinations_with_the_defaults_first() -> None:
    assert readings_of(()) == [{}]
    assert readings_of((START, NORM)) == table(__file__, "readings")


def test_a_default_is_a_choice() -> None:
    with pytest.raises(UnknownName, match="at two"):
        OpenPoint("start", "it starts", "where", {"at zero": 0}, "at two")


@pytest.mark.parametrize(("verdicts", "expected", "kind"), table(__file__, "test_verdicts_in_one"))
def test_verdicts_in_one(verdicts, expected, kind) -> None:
    assert sum_up({name: Verdict(verdict) for name, verdict in verdicts.items()}) == expected
    assert kind_of(expected) == kind and kind in KINDS


def test_counts_are_of_kinds() -> None:
    assert count_verdicts(
        ["holds", "holds under b", "holds under c", "not reproduced under any reading"]
    ) == ("4 statements: 1 holds, 2 holds under another reading, 1 not reproduced")


def found(run: Run) -> Finding:
    start = run.choice(START)
    return Finding(HOLDS if start == 0 else NOT, f"from {start}", figures={"draw": int(run.rng.integers(99))})


def test_a_claim_runs_under_each_reading(capsys, tmp_path) -> None:
    enter_claim(PAPER, {"name": "a", "recorded": ["not reproduced", "holds"]}, found, (START,))
    (result,) = check_claims()
    assert result.as_recorded and result.verdict == result.claim.verdict == "holds under at zero"
    assert result.finding.evidence == "from 1"
    assert [own.evidence for own in result.findings.values()] == ["from 1", "from 0"]
    draws = {own.figures["draw"] for own in result.findings.values()}
    assert len(draws) == 1  # readings are compared on the same random numbers
    path = tmp_path / "claims.json"
    assert print_claims(path=path) == 0
    text = capsys.readouterr().out
    assert "holds under at zero" in text
    assert "1 statement: 1 holds under another reading" in text
    (entry,) = json.loads(path.read_text())["claims"]
    assert entry["verdict"] == "holds under at zero" and entry["found"] == "not reproduced"
    assert {name: own["found"] for name, own in entry["readings"].items()} == {
        "at one": "not reproduced",
        "at zero": "holds",
    }


def test_a_verdict_that_differs_under_one_reading(capsys) -> None:
    enter_claim(PAPER, {"name": "a", "recorded": "not reproduced"}, found, (START,))
    (result,) = check_claims()
    assert result.differing == {"at zero": (NOT, HOLDS)}
    assert print_claims() == 1
    assert "nn2000/a under at zero: recorded not reproduced, found holds" in capsys.readouterr().out


def drawn(run: Run) -> Outcome:
    start = run.choice(START)
    panel = Panel("x", "y", [Series("a", ["u", "v"], [start, 2])], kind="bars")
    verdict = HOLDS if start == 0 else NOT
    return Outcome([panel], [Judged("it starts", f"at {start}", verdict)], "nothing")


@pytest.mark.parametrize("run", [Run("tiny"), Run("paper", all_readings=True)], ids=lambda run: run.scale)
def test_a_figure_draws_the_defaults_and_judges_all(run, tmp_path, monkeypatch) -> None:
    subtitles = []
    monkeypatch.setattr(figures, "draw", lambda panels, path, title, subtitle: subtitles.append(subtitle))
    figure(PAPER, "fig1", title="one", source="Fig. 1", under=(START,))(drawn)
    figure(PAPER, "fig2", title="two", source="Fig. 2", under=(START,), only_small=(START,))(drawn)
    entry, other = registry.list_figures()
    alone = make_figure(entry, Run("paper"), tmp_path)
    assert alone["verdict"] == "1 statement: 1 not reproduced" and "--all" not in alone["command"]
    content = make_figure(entry, run, tmp_path)
    assert content["command"].endswith(" --all-readings") == run.all_readings
    assert (
        content["reading"] == "at one" and content["verdict"] == "1 statement: 1 holds under another reading"
    )
    assert content["claims"] == table(__file__, "claims")
    assert "a,u,1," in (tmp_path / "nn2000-fig1.csv").read_text()  # what is drawn is of the default
    assert subtitles == ["nothing; at one; seed 0; shaded or whiskers: 95% intervals"] * 2
    (claim,) = make_figure(other, run, tmp_path)["claims"]
    assert len(claim["readings"]) == (2 if run.small else 1)


def test_readings_judge_the_same_statements() -> None:
    one, two = Judged("one", "", HOLDS), Judged("two", "", HOLDS)
    with pytest.raises(ValueError, match="other statements"):
        judged_under({"a": [one], "b": [two]})


def test_policies_that_a_reading_leaves_alone_run_once(tiny_run, monkeypatch) -> None:
    from schedgym.evaluation import episodes

    ran = []
    original = episodes.run_episodes

    def watched(unit, *given):
        ran.append(unit.line.entrant.label)
        return original(unit, *given)

    monkeypatch.setattr(episodes, "run_episodes", watched)
    shared = tiny_run("nn2000")
    arguments = {"episodes": 2, "parameters": {"tasks": 20, "servers": 2}}
    first = shared.alone("fig").play("schedgym/QueueDelay-v0", ["bf-exec", "fcfs"], **arguments)
    assert set(ran) == {None, "bf-exec", "fcfs"}
    ran.clear()
    again = shared.alone("fig", {"start": "at zero"})
    second = again.play("schedgym/QueueDelay-v0", ["bf-exec", "ffd-nb"], **arguments)
    spent = dict(shared.spent)
    third = again.play("schedgym/QueueDelay-v0", ["bf-exec", "ffd-nb"], **arguments)
    assert set(ran) == {"ffd-nb"} and third.ran == 0.0 and shared.spent == spent  # counted once
    assert again.ran == second.ran > 0.0 and len(spent) == 2 * 4
    assert second.metric("bf-exec", "bound").tolist() == first.metric("bf-exec", "bound").tolist()
    assert second.metric("bf-exec", "mean_delay").tolist() == first.metric("bf-exec", "mean_delay").tolist()
