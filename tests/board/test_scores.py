"""Scores, their report, and the files for searchers, whose model is a random mutator here."""

from __future__ import annotations

import importlib.util
import json
import math
import random
import re
import subprocess
import sys

import numpy as np
import pytest

from schedgym.board import scores
from schedgym.board.entries import Known, load_schedules
from schedgym.board.judge import judge
from schedgym.board.scores import (
    Report,
    Result,
    estimate_score,
    evaluate_program,
    facts_of,
    ratio_to_bound,
    score_of,
)
from schedgym.board.suites import Suite, load_suite, suites
from schedgym.cli import main
from schedgym.evaluation.statistics import bootstrap_interval
from tests.long import long, some
from tests.tables import table

INSTANCES = load_suite("QueueDelay-1").instances("train")[:2]


def facts(reference, best, bound=None):
    return Known(reference=reference, best_known=best, bound=bound, by="x", digest="")


@pytest.mark.parametrize(
    ("value", "reference", "best", "sign", "score"), table(__file__, "test_the_scale_of_scores")
)
def test_the_scale_of_scores(value, reference, best, sign, score):
    assert score_of(value, facts(reference, best), 100.0, sign) == pytest.approx(score)


def test_where_all_references_are_0_the_sign_counts():
    assert [score_of(value, facts(0.0, 0.0), 0.0, 1.0) for value in (0.0, 3.0)] == [0.0, -1.0]


def test_the_usual_reference_is_that_of_the_size(monkeypatch):
    monkeypatch.setattr(scores, "known", lambda instance: facts(float(instance.index), 0.0))
    instances = load_suite("QueueDelay-1").instances("train")
    usual = {own.size: usual for own, (_, usual) in zip(instances, facts_of(instances), strict=True)}
    assert usual == {"small": 14.5, "paper": 32.0, "loaded": 42.0}


def results(values, refusals=("", "")):
    known = [facts(100.0, 50.0, 40.0), facts(10.0, 8.0, 5.0)]
    return tuple(
        Result(*row[:2], 55.0, row[2], None, row[3])
        for row in zip(INSTANCES, known, values, refusals, strict=True)
    )


def test_a_set_has_the_mean_its_interval_and_the_ratio_to_the_bound():
    found = results((75.0, 9.0))
    estimate = estimate_score(found)
    assert estimate.value == pytest.approx(0.5)
    assert (estimate.low, estimate.high) == bootstrap_interval([0.5, 0.5])
    assert estimate_score(found, results((75.0, 10.0))).value == pytest.approx(0.25)  # 0.5, 0.5 and 0.5, 0
    assert ratio_to_bound(found) == pytest.approx(84 / 45)
    assert math.isnan(ratio_to_bound([Result(INSTANCES[0], facts(1.0, 1.0), 1.0, 1.0)]))
    nothing_waits = Result(INSTANCES[0], facts(0.0, 0.0, 0.0), 1.0, 0.0)
    assert ratio_to_bound([*found, nothing_waits]) == pytest.approx(84 / 45)
    assert math.isnan(ratio_to_bound([nothing_waits]))


def test_a_report_says_where_a_candidate_loses():
    report = Report("x", "QueueDelay-1", "train", results((75.0, 12.0)), 10, 0.1, ())
    assert report.combined_score == pytest.approx((0.5 - 0.5) / 2)  # of the scores 0.5 and -1
    lines = report.feedback().splitlines()
    assert lines[0].startswith("score −0.2500 [") and "bf-exec, the paper's own algorithm" in lines[0]
    assert lines[2].startswith("QueueDelay-1/train/1 (small): mean_delay 12, bf-exec 10, best known 8")
    assert lines[3].startswith("QueueDelay-1/train/0")
    refused = Report("x", "QueueDelay-1", "train", results((75.0, 10.0), ("", "no")), 10, 0.1, ())
    assert refused.combined_score == pytest.approx((0.5 - 1.0) / 2)
    bad = Report("x", "QueueDelay-1", "train", results((75.0, 1e4)), 10, 0.1, ())
    assert bad.combined_score > refused.combined_score  # it does not learn to crash
    assert "refused: QueueDelay-1/train/1: no" in refused.feedback()
    json.dumps(refused.content(), allow_nan=False)


@pytest.fixture
def few(monkeypatch):
    """Sets of two small instances, of which little is known: a short run."""
    every = Suite.instances
    monkeypatch.setattr(Suite, "instances", lambda *asked: every(*asked)[:2])
    monkeypatch.setattr(scores, "known", lambda instance: facts(40.0, 30.0, 10.0))


def test_a_run_plays_judges_and_scores(few, capsys, tmp_path):
    file, kept = tmp_path / "run.json", tmp_path / "run.npz"
    options = ["--suite", "QueueDelay-1", "--set", "train", "--json", str(file), "--schedules", str(kept)]
    assert main(["board", "run", "score: -execution", *options]) == 0
    printed = capsys.readouterr()
    content = json.loads(file.read_text())
    assert "score: -execution on QueueDelay-1/train" in printed.out and printed.err == ""
    assert content["refused"] == 0 and content["not_restricted"] == []
    for row, instance in zip(content["instances"], INSTANCES, strict=True):
        assert row["instance"] == instance.name
        assert row["score"] == pytest.approx((40.0 - row["mean_delay"]) / 10.0)
    loaded = load_schedules(kept, INSTANCES)
    assert [judge(i, loaded[i.index]) for i in INSTANCES] == [
        row["mean_delay"] for row in content["instances"]
    ]


def test_a_refused_instance_scores_as_the_paper(few, capsys, tmp_path):
    file = tmp_path / "bad.py"
    file.write_text("def act(observation):\n    raise ValueError('no idea')\n")
    kept = tmp_path / "bad.npz"
    command = ["board", "run", f"{file}:act", "--suite", "QueueDelay-1", "--set", "train"]
    assert main([*command, "--schedules", str(kept)]) == 1 and not kept.exists()
    printed = capsys.readouterr()
    assert printed.err.count("ValueError: no idea") == 3
    assert " 40 " in printed.out
    assert main(["board", "run", "score: (", "--suite", "QueueDelay-1"]) == 2
    assert "error: score: (: InvalidParameter" in capsys.readouterr().err
    assert main([*command, "--memory", "-1"]) == 2  # which a system takes for no limit
    assert capsys.readouterr().err.startswith("error: limits: memory must be a number above 0")


@pytest.mark.parametrize("suite", some(suites(), late=3))
def test_the_files_for_searchers(suite, few, tmp_path, capsys):
    """The starting program plays, and so does one of a random mutator, as the searchers call them."""
    assert main(["board", "evaluator", suite, "-o", str(tmp_path)]) == 0
    assert main(["board", "evaluator", suite, "-o", str(tmp_path)]) == 2  # nothing is overwritten
    start = (tmp_path / "initial.py").read_text()
    spec = importlib.util.spec_from_file_location("evaluator", tmp_path / "evaluator.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = module.evaluate(str(tmp_path / "initial.py"))  # OpenEvolve, SkyDiscover
    assert found["error"] == "" and found["refused"] == 0, found
    assert all(isinstance(value, (int, float, str)) for value in found.values())
    block = re.compile("(# EVOLVE-BLOCK-START\n).*?(# EVOLVE-BLOCK-END)", re.DOTALL)
    mutant = mutate(start, block, random.Random(suite))
    (tmp_path / "mutant.py").write_text(mutant)
    assert np.isfinite(module.evaluate(str(tmp_path / "mutant.py"))["combined_score"])


def mutate(program, block, rng):
    """The program with another block: what a model would answer, by chance."""
    numbers = f"{rng.uniform(-1, 1)} * np.arange(len(observation[MASK])) ** {rng.uniform(0, 2)}"
    return block.sub(rf"\1def score(observation):\n    return {numbers}\n\2", program)


@long
def test_shinka_evolve_runs_the_evaluator_as_a_script(tmp_path):
    """It reads metrics.json and correct.json of a process that it starts."""
    assert main(["board", "evaluator", "SingleJob-1", "-o", str(tmp_path)]) == 0
    program = tmp_path / "broken.py"
    program.write_text("def Candidate(:\n")
    command = [sys.executable, str(tmp_path / "evaluator.py"), "--program_path", str(program)]
    subprocess.run([*command, "--results_dir", str(tmp_path / "results")], check=True)
    metrics = json.loads((tmp_path / "results" / "metrics.json").read_text())
    correct = json.loads((tmp_path / "results" / "correct.json").read_text())
    assert metrics["combined_score"] == -1.0 and "SyntaxError" in metrics["text_feedback"]
    assert correct["correct"] is False and "broken.py:1" in correct["error"]


def test_a_program_that_is_no_program_is_told_why(tmp_path):
    assert "No such file" in evaluate_program(str(tmp_path / "none.py"), "SingleJob-1")["error"]
