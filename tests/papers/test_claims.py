"""The frame of the claims: registration, discovery, verdicts against the record, what the command prints."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from schedgym.documents import parse_yaml, read_yaml
from schedgym.errors import InvalidParameter, SchedgymError, UnknownName
from schedgym.papers import PAPERS, Claims, Finding, Paper, Verdict, check_claims, list_claims, registry
from schedgym.papers.main import print_claims
from schedgym.papers.readings import OpenPoint
from tests.interpreted import python
from tests.papers.recorded import COMMITTED, enter_claim

PAPER = Paper("nn2000", "a paper", "A paper", "Nobody", "Nowhere", ())


def register(name, finding, recorded="holds", confirm=None, ours=False):
    def check(run):
        return finding(run) if callable(finding) else finding

    enter_claim(PAPER, {"name": name, "recorded": recorded, "ours": ours}, check, confirm=confirm)


def test_papers_are_found() -> None:
    names = {entry.paper.key for entry in list_claims()}
    assert "guan2022" in names
    assert all(entry.name.startswith(f"{entry.paper.key}/") for entry in list_claims())
    assert {entry.paper.key for entry in list_claims("guan2022")} == {"guan2022"}
    (one,) = list_claims("guan2022/amf-envy")
    assert one.source == "Theorem 4.4"
    with pytest.raises(UnknownName, match="did you mean 'guan2022'"):
        list_claims("guan202")
    with pytest.raises(UnknownName, match="did you mean 'guan2022/amf-envy'"):
        list_claims("guan2022/amf-envi")


def test_names_are_taken_once(empty) -> None:
    register("a", Finding(Verdict.HOLDS, "seen"))
    with pytest.raises(ValueError, match="registered already"):
        register("a", Finding(Verdict.HOLDS, "seen"), recorded="in part")


def test_claims_of_a_file(empty) -> None:
    """In the order of the file, whatever that of the checks; verdicts by reading, in their order."""
    point = OpenPoint("size", "", "", {"few": 1, "many": 2}, "many")
    rows = parse_yaml(
        """
section:
  - {name: a, text: a is so, source: page 1, recorded: holds, found: "seen {times} times"}
  - {name: b, text: b is so, source: page 2, under: [SIZE], recorded: [in part, holds], compare: {least: 2}}
other: []
wrong:
  - {name: c, text: "", source: "", recorded: holds, compare: {most: 2}}
longer:
  - {name: d, text: "", source: "", recorded: [holds, holds], compare: {least: 2}}
""",
        "rows",
    )

    def compare(least):
        return lambda run: Finding(Verdict.HOLDS if run.choice(point) < least else Verdict.IN_PART, "")

    claim = Claims(PAPER, rows, {"SIZE": point})
    claim.compare("section", compare)
    claim("a")(lambda run, say: say(Verdict.HOLDS, {"times": 2}))
    results = check_claims()
    assert [(r.claim.name, r.claim.text, r.claim.source) for r in results] == [
        ("nn2000/a", "a is so", "page 1"),
        ("nn2000/b", "b is so", "page 2"),
    ]
    assert results[0].finding.evidence == "seen 2 times" and all(r.as_recorded for r in results)
    assert results[1].verdicts == {"many": Verdict.IN_PART, "few": Verdict.HOLDS}
    with pytest.raises(TypeError, match="most"):
        claim.compare("wrong", compare)
    with pytest.raises(ValueError, match="longer"):
        claim.compare("longer", compare)
    with pytest.raises(UnknownName, match="unknown claim 'e'"):
        claim("e")


def test_results_come_from_the_run(empty) -> None:
    register(
        "a", lambda run: Finding(Verdict.HOLDS, run.scale, figures={"draw": int(run.rng.integers(1000))})
    )
    register("b", lambda run: Finding(Verdict.NOT_REPRODUCED, "measured", figures={"small": run.small}))
    told = []
    results = check_claims(scale="paper", seed=3, progress=lambda *state: told.append(state))
    assert [r.claim.name for r in results] == ["nn2000/a", "nn2000/b"]
    assert [r.as_recorded for r in results] == [True, False]
    assert results[0].finding.evidence == "paper" and results[1].finding.figures == {"small": False}
    assert told == [(0, 2, "nn2000/a"), (1, 2, "nn2000/b"), (2, 2, "")]
    # random numbers depend on the seed and the claim, not on what else is checked
    draw = results[0].finding.figures["draw"]
    assert check_claims("nn2000/a", seed=3)[0].finding.figures["draw"] == draw
    assert {check_claims("nn2000/a", seed=s)[0].finding.figures["draw"] for s in range(5)} != {draw}


def test_arguments_are_checked(empty) -> None:
    register("a", Finding(Verdict.HOLDS, "seen"))
    with pytest.raises(UnknownName, match="unknown scale 'papers'; did you mean 'paper'"):
        check_claims(scale="papers")
    with pytest.raises(InvalidParameter, match="seed: must be from 0"):
        check_claims(seed=-1)


@pytest.mark.parametrize(
    ("finding", "message"),
    [
        (Finding(Verdict.REFUTED, "x"), "refuted, and no counterexample"),
        (Finding(Verdict.CORRECTED, "x"), "holds with a correction, and no counterexample"),
        (Finding(Verdict.HOLDS, "x", counterexample={"n": 1}), "holds, and a counterexample"),
        (Finding(Verdict.REFUTED, "x", counterexample={"n": 0}), "is not confirmed"),
        (Finding(Verdict.HOLDS, "x", witness={"n": 0}), "is not confirmed"),
    ],
)
def test_findings_that_contradict_themselves(empty, finding, message) -> None:
    register("a", finding, confirm=lambda instance: instance["n"] == 1)
    with pytest.raises(SchedgymError, match=message):
        check_claims()


def test_an_instance_needs_a_confirmation(empty) -> None:
    register("a", Finding(Verdict.REFUTED, "x", counterexample={"n": 1}), recorded="refuted")
    with pytest.raises(SchedgymError, match="is not confirmed"):
        check_claims()


def test_the_command(empty, tmp_path, capsys) -> None:
    found = Finding(
        Verdict.REFUTED, "searched [all]", counterexample={"slots_of": [1, [2]], "a": {"b": "1/2"}}
    )
    register("a", found, recorded="refuted", confirm=lambda instance: True)
    register("b", Finding(Verdict.HOLDS, "proved", witness={"n": 3}), confirm=lambda instance: True)
    path = tmp_path / "claims.json"
    assert print_claims(["nn2000"], seed=2, path=path) == 0
    text = capsys.readouterr().out
    assert "refuted" in text and "searched [all]" in text and "text of a" in text
    assert "slots of [1, [2]], a {b: 1/2}" in text
    assert "2 claims, scale small, seed 2" in text and "all verdicts as recorded" in text
    content = json.loads(path.read_text())
    assert [entry["found"] for entry in content["claims"]] == ["refuted", "holds"]
    assert content["claims"][0]["counterexample"] == {"slots_of": [1, [2]], "a": {"b": "1/2"}}
    assert content["manifest"]["seeds"] == [2] and content["manifest"]["scale"] == "small"
    register("c", Finding(Verdict.NOT_REPRODUCED, "measured"))
    assert print_claims() == 1
    text = capsys.readouterr().out
    assert "nn2000/c: recorded holds, found not reproduced" in text and "1 not as recorded" in text


def test_statements_that_the_paper_does_not_make_stand_apart(empty, tmp_path, capsys) -> None:
    register("a", Finding(Verdict.HOLDS, "first"))
    register("b", Finding(Verdict.HOLDS, "second"), ours=True)
    register("c", Finding(Verdict.HOLDS, "third"))
    path = tmp_path / "claims.json"
    assert print_claims(path=path) == 0
    text = capsys.readouterr().out
    places = [text.index(words) for words in ("first", "third", "statements that it does not make", "second")]
    assert places == sorted(places)
    assert "2 claims and 1 besides that no paper makes, scale small" in text
    entries = json.loads(path.read_text())["claims"]
    assert [entry["claim"] for entry in entries] == ["nn2000/a", "nn2000/b", "nn2000/c"]
    assert [entry["ours"] for entry in entries] == [False, True, False]


def test_which_statements_the_papers_do_not_make() -> None:
    ours = {entry.name for entry in list_claims() if entry.ours}
    assert ours >= {entry.name for entry in list_claims() if re.search(r"\bnot said\b|\bours\b", entry.text)}
    assert ours == {name for name, entry in COMMITTED.items() if entry["ours"]}


def test_claims_are_in_the_order_of_the_papers() -> None:
    """Also if a late module of a paper is the first to be imported."""
    late = ("guan2022.site_groups", "shi2017.many_jobs", "xu2021.figures")
    code = "import importlib\n"
    code += "".join(f"importlib.import_module('schedgym.papers.{module}')\n" for module in late)
    code += "from schedgym.papers import list_claims\nprint(*(entry.name for entry in list_claims()))"
    done = python("-c", code)
    assert done.stdout.split() == list(COMMITTED) == [entry.name for entry in list_claims()]


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.key)
def test_every_row_of_a_file_has_its_function(paper) -> None:
    folder = Path(registry.__file__).parent / paper.key
    rows = [row["name"] for section in read_yaml(folder / "claims.yaml").values() for row in section]
    assert [entry.short for entry in list_claims(paper.key)] == rows
    figures = read_yaml(folder / "figures.yaml")
    assert {entry.short for entry in registry.list_figures(paper.key)} == set(figures)
    remarks = {name for row in figures.values() for name in row.get("remarks", ())}
    assert remarks - {registry.OF_THE_RUN} == set(read_yaml(folder / "remarks.yaml"))
