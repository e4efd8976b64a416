"""The figures of noroozoliaee2014: series, values against runs of their own, the level that it names."""

from __future__ import annotations

import pandas
import pytest

from schedgym.evaluation.runner import evaluate
from schedgym.papers import check_claims, list_figures, make_figure
from tests.long import long
from tests.tables import entry, table

pytestmark = long

ID = "schedgym/QueueDelay-v0"


@pytest.fixture(scope="module")
def made(tmp_path_factory, run):
    folder = tmp_path_factory.mktemp("figures")
    return {
        e.name: (make_figure(e, run, folder), folder / f"{e.stem}.csv")
        for e in list_figures("noroozoliaee2014")
    }


def test_the_policies_of_the_paper_are_drawn(made) -> None:
    for _, path in made.values():
        assert set(pandas.read_csv(path).series) >= {"BF-EXEC", "FFD-DP", "FFD-NB", "FCFS"}


@pytest.mark.parametrize(
    ("name", "panel", "metric", "factor"),
    table(__file__, "test_points_are_means_of_runs"),
)
def test_points_are_means_of_runs(made, name, panel, metric, factor) -> None:
    table = pandas.read_csv(made[name][1], dtype={"panel": str})
    for servers in (2, 4):
        parameters = {"tasks": 60, "servers": servers, "view": "placement"}
        frame = evaluate(ID, ["ffd-nb-blocking"], 2, parameters=parameters)
        mean = frame[frame.metric == metric].value.mean() * factor
        point = table[(table.panel == panel) & (table.series == "FFD-NB") & (table.x == servers)]
        assert point.y.item() == pytest.approx(mean, rel=1e-5)
    if name == "noroozoliaee2014/fig3":
        bounds = frame[frame.metric == "bound"].value.mean()
        point = table[(table.series == "lower bound") & (table.x == 4)]
        assert point.y.item() == pytest.approx(bounds, rel=1e-5)


def test_statements_are_the_claims(made) -> None:
    """Each is registered once, and has the same verdicts on a figure as among the claims."""
    said = [claim for content, _ in made.values() for claim in content["claims"]]
    names = [claim["name"] for claim in said]
    results = {result.claim.name: result for result in check_claims(*names, scale="tiny")}
    assert [name.partition("/")[2] for name in names] == entry(__file__, "test_statements_are_the_claims")
    for claim in said:
        own = results[claim["name"]]
        assert claim["claim"] == own.claim.text and claim["measured"] == own.finding.evidence
        for words, finding in own.findings.items():
            under = [
                read for name, read in claim["readings"].items() if name.startswith(words) or words in name
            ]
            assert under and all(read["verdict"] == str(finding.verdict) for read in under)
