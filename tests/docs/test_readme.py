"""The README says what was measured, cites the papers, and its pictures are there."""

from __future__ import annotations

import dataclasses
import importlib
import json
import re
from pathlib import Path

import numpy as np
import pandas
import pytest

from schedgym.agents.files import list_pretrained, load_agent
from schedgym.core.problem import list_problems
from schedgym.documents import read_yaml
from schedgym.papers import HOLDS, IN_PART, NOT_REPRODUCED, NOT_TOLD, judging, list_claims, list_figures
from schedgym.papers.paper import PAPERS
from schedgym.papers.verdicts import statements
from tests.long import long
from tests.tables import table

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tables():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        yield importlib.import_module("tables")


@long
def test_the_tables_are_those_of_the_measurements(tables) -> None:
    for path in tables.TABLES:
        text = path.read_text(encoding="utf-8")
        assert tables.filled(path, text) == text, "run python docs/tables.py"
        with pytest.raises(ValueError, match=f"{path.name} has no place for"):
            tables.filled(path, "nothing")


def test_every_id_is_in_the_table_with_its_best_policy(tables) -> None:
    rows = {row.split("`")[1]: row for row in tables.leaderboard().splitlines()[2:]}
    assert set(rows) == {id for problem in list_problems().values() for id in problem.ids}
    boards = pandas.read_csv(ROOT / "docs" / "leaderboard.csv")
    for id, board in boards.groupby("id"):
        extreme = board["mean"].max() if board["better"].iloc[0] == "max" else board["mean"].min()
        best = board[board["mean"] == extreme].iloc[0]
        assert ("the shipped agent" if best.policy == "agent" else f"`{best.policy}`") in rows[id]
        if best.bound > 0:
            assert f"{extreme / best.bound:.3f}" in rows[id]


def test_cards_tell_where_agents_lose_and_whose_results_they_are(tables) -> None:
    results = pandas.read_csv(ROOT / "docs" / "agents.csv")
    for id, path in list_pretrained().items():
        rows = results[(results["id"] == id) & (results["policy"] == "agent")]
        more = rows["better"] == "max"
        worse = (rows["rival_difference_low"] > 0) & ~more | (rows["rival_difference_high"] < 0) & more
        better = (rows["rival_difference_high"] < 0) & ~more | (rows["rival_difference_low"] > 0) & more
        text = tables.card(path)
        assert len(rows) and text.count("| worse |") == worse.sum()
        assert text.count("| better |") == better.sum()
        assert ("- Worse than the best baseline in the settings " in text) == worse.any()
        agent = load_agent(path)
        assert agent.sha256[:16] in text and agent.metadata["command"] in text
        other = dataclasses.replace(agent, sha256="0" * 64)
        assert "**These results are of an earlier agent**" in tables.results(other)


def test_cards_of_several_trainings_and_of_one_episode(tables, monkeypatch, tmp_path) -> None:
    agent = load_agent(next(iter(list_pretrained().values())))
    results = pandas.read_csv(ROOT / "docs" / "agents.csv", dtype=str, keep_default_na=False)
    mine = results[results["id"] == agent.id]
    policies = {"agent", *mine["rival"]} - {""}
    mine = mine[mine["policy"].isin(policies)].iloc[: 2 * len(policies)].copy()
    monkeypatch.setattr(tables, "DOCS", tmp_path)

    def told() -> str:
        mine.to_csv(tmp_path / "agents.csv", index=False)
        return tables.results(agent)

    mine["trainings"], mine["agent"] = "2", f"{'0' * 64} {agent.sha256}"
    text = told()
    assert "2 trainings: differences are interquartile means" in text and "earlier agent" not in text
    mine["agent"] = f"{'0' * 64} {'1' * 64}"
    assert "**These results are of an earlier agent**" in told()

    # the verdict is of the interval that is shown
    mine["better"], mine["rival_relative"] = "min", "-0.05"
    mine["rival_relative_low"], mine["rival_relative_high"] = "-0.2", "0.1"
    mine["rival_difference_low"], mine["rival_difference_high"] = "-2", "-1"
    assert told().count("| -5.0% [-20.0%, +10.0%] | not different |") == 2
    mine["rival_difference"] = "-1.5"
    mine[["rival_relative_low", "rival_relative_high"]] = ""
    assert told().count("| -1.5 [-2, -1] slots^k | better |") == 2
    mine[["rival_difference_low", "rival_difference_high"]] = ""
    text = told()
    assert text.count("| -1.5 slots^k | no interval |") == 2 and "- No interval, and no verdict: `" in text


def test_cards_show_the_start_of_the_training_where_it_was_run(tables, monkeypatch, tmp_path) -> None:
    agent = load_agent(next(iter(list_pretrained().values())))
    results = pandas.read_csv(ROOT / "docs" / "agents.csv", dtype=str, keep_default_na=False)
    mine = results[(results["id"] == agent.id) & (results["policy"] != "start")]
    monkeypatch.setattr(tables, "DOCS", tmp_path)
    mine.to_csv(tmp_path / "agents.csv", index=False)
    assert {row["start_means"] for row in tables.rows_of(agent)} == {"-"}
    start = mine.iloc[[0]].assign(policy="start", mean="7", mean_low="6.5", mean_high="7.5")
    pandas.concat([mine, start]).to_csv(tmp_path / "agents.csv", index=False)
    assert [row["start_means"] for row in tables.rows_of(agent)][:2] == ["7 [6.5, 7.5]", "-"]
    assert tables.results(agent).count("| 7 [6.5, 7.5] |") == 1


@pytest.mark.parametrize(
    ("verdict", "better", "rival", "difference", "judged"),
    table(__file__, "test_an_agent_wins_is_level_or_loses_in_a_setting"),
)
def test_an_agent_wins_is_level_or_loses_in_a_setting(
    tables, verdict: str, better: str, rival: float, difference: float, judged: str
) -> None:
    row = {"verdict": verdict, "better": better, "rival_mean": rival, "rival_difference": difference}
    assert tables.judge_setting(row, {"rival_mean": 100.0}) == judged


def test_the_matrix_counts_the_settings_of_each_shipped_agent(tables) -> None:
    for line in tables.matrix().splitlines()[2:]:
        id, settings, counts, unseen, roomy, _ = (part.strip() for part in line.strip("|").split("|"))
        results = pandas.read_csv(ROOT / "docs" / "matrix" / f"{id}.csv")
        agents = results[results["policy"] == "agent"]
        assert set(agents["agent"]) == {load_agent(list_pretrained()[f"schedgym/{id}-v0"]).sha256}
        assert len(agents) == int(settings) >= 20
        won, level, lost = map(int, counts.split("/"))
        assert won + level + lost == len(agents) <= 2 * int(unseen.partition(":")[0])
        assert (roomy == "-") == agents["bound"].isna().all()
        if roomy != "-":
            best, bound = agents["rival_mean"].to_numpy(), agents["bound"].to_numpy()
            won_there, of = map(int, roomy.split(" of "))
            assert won_there <= min(won, of) and of == (np.abs(best - bound) > 0.02 * np.abs(best)).sum()


def test_the_verdicts_of_figures_are_those_of_the_results(tables) -> None:
    text = tables.COMMITTED.read_text(encoding="utf-8")
    assert tables.figures_verdicts() == text, "run python docs/tables.py"


def test_verdicts_count_only_what_the_papers_say(tables) -> None:
    rows = {row.split(" ")[1]: row.split(" | ") for row in tables.verdicts().splitlines()[2:]}
    for paper in PAPERS:
        claims = list_claims(paper.key)
        counts = [int(cell.strip(" |")) for cell in rows[paper.key][1:]]
        ours = sum(claim.ours for claim in claims)
        total, *by_kind, besides = counts
        assert total == sum(by_kind) >= len(claims) - ours and besides == ours > 0


def test_the_audit_names_statements_once(tables) -> None:
    """Each case is one statement, or one of ours; none is left."""
    audit = read_yaml(DOCS / "audit.yaml")
    for paper in PAPERS:
        known = [(said.name, said.text) for said in statements(paper)]
        known += [(claim.name, claim.text) for claim in list_claims(paper.key) if claim.ours]
        cases = [case["statement"] for case in audit["cases"] if case["paper"] == paper.key]
        assert len(cases) == len(set(cases)) <= audit["unfair"][paper.key]
        for own in cases:
            assert sum(name == f"{paper.key}/{own}" or text.startswith(own) for name, text in known) == 1, own
    table = tables.findings().partition("## How many")[2]
    assert table.count("| 0 |\n") + table.endswith("| 0 |") == len(PAPERS)


def test_pictures_and_papers_are_there() -> None:
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", README)
    assert len(pictures) == 2
    for picture in pictures:
        assert (ROOT / picture).stat().st_size < 600_000
    for paper in PAPERS:
        assert paper.citation in README


def test_every_figure_has_been_made() -> None:
    folder = ROOT / "docs" / "reproduced"
    made = {}
    for path in folder.glob("*.json"):
        content = json.loads(path.read_text(encoding="utf-8"))
        made[content["figure"]] = content
        assert all((folder / name).is_file() for name in content["files"].values())
    assert set(made) == {entry.name for entry in list_figures()}
    assert {content["scale"] for content in made.values()} == {"small"}
    assert all(made[entry.name]["title"] == entry.title for entry in list_figures())


def test_the_papers_have_claims_and_figures() -> None:
    for paper in PAPERS:
        assert list_claims(paper.key) and list_figures(paper.key)


# numbers and words of texts -----------------------------------------------------------------------------

#: in hand-written text: what is made of data, code, addresses, tables, and what is quoted
NOT_PROSE = re.compile(r"(?ms)<!-- (\w+) -->.*?<!-- /\1 -->|```.*?```|`[^`]*`|\]\([^)]*\)|^\|.*?$|\"[^\"]*\"")
ANY_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e-?\d+)?(?!\w)")
NUMBER = re.compile(r"(?<![\w.-])(\d[\d,]*(?:\.\d+)?)(%?)")


def numbers_of(text: str) -> list[tuple[str, bool]]:
    """Numbers of the hand-written prose, and whether each is a percentage."""
    return [(found.replace(",", ""), bool(sign)) for found, sign in NUMBER.findall(NOT_PROSE.sub("", text))]


@pytest.mark.parametrize(
    "name", ["README.md", "docs/papers.md", "docs/errata/index.md", "docs/figures/index.md"]
)
def test_what_is_measured_of_the_papers_is_written_by_a_program(name) -> None:
    """By hand only the rules of judging are given: the confidence, and what is seen, or general."""
    text = (ROOT / name).read_text(encoding="utf-8")
    rules = {f"{100 * share:g}" for share in (0.95, judging.SEEN, judging.GENERALLY)}
    found = numbers_of(text)
    assert {number for number, percent in found if percent or "." in number} <= rules | {"3.11"}
    told = numbers_of("about 6 to 29% and `7%`, 1.006 times")
    assert told == [("6", False), ("29", True), ("1.006", False)]


def test_numbers_on_agents_are_in_a_table() -> None:
    """Numbers of three digits and more, up to rounding: shorter ones are in some table by accident."""
    quoted = {float(value) for row in read_yaml(DOCS / "quoted.yaml") for value in row["measured"]}
    tables = [path for stem in ("agents", "leaderboard") for path in DOCS.glob(f"{stem}*.[cy]*")]
    texts = [text for path in tables for text in ANY_NUMBER.findall(path.read_text(encoding="utf-8"))]
    found = np.array([*map(float, texts)])
    values = {percent: np.append(found * (100 if percent else 1), [*quoted]) for percent in (False, True)}
    prose = numbers_of((DOCS / "agents.md").read_text(encoding="utf-8"))
    seen = [(text, percent) for text, percent in prose if len(text.replace(".", "").lstrip("0")) >= 3]
    for text, percent in seen:
        step = 0.5 * 10.0 ** -len(text.partition(".")[2]) * (1.0 + 1e-9)
        assert np.any(np.abs(values[percent] - float(text)) <= step), f"{text} is in no table"
    assert quoted <= {float(text) for text, _ in seen}


#: what a text of comparisons says of its cases: those as claimed, all, those in part, those contrary
CASES = re.compile(r"as claimed in (\d+) of (\d+) cases(?:, in part in (\d+))?(?:, contrary in (\d+))?")


RECORDED = sorted((DOCS / "reproduced").rglob("*.json"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_recorded_verdicts_follow_from_the_words(path) -> None:
    """From the cases that are counted: what is judged overall may hold without them, if none is contrary."""
    content = json.loads(path.read_text(encoding="utf-8"))
    for said in content["claims"]:
        for found in said["readings"].values() or [said]:
            groups = [[int(n or 0) for n in cases] for cases in CASES.findall(found["measured"])]
            if not groups:
                continue
            held, total, partly, contrary = map(sum, zip(*groups, strict=True))
            most = [2 * (held + partly) >= total for held, total, partly, _ in groups]
            if " overall (" in found["measured"]:
                assert found["verdict"] != HOLDS or not contrary
                assert found["verdict"] in (HOLDS, IN_PART) or 2 * sum(most) < len(most)
                continue
            few = {NOT_REPRODUCED, NOT_TOLD}
            expected = {HOLDS} if held == total else {IN_PART} if 2 * (held + partly) >= total else few
            assert found["verdict"] in expected, said["claim"]
