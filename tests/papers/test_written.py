"""The figures of the papers on the tiny scale: all are there, and what is written is what is drawn."""

from __future__ import annotations

import json
import math
import re

import pandas
import pytest

from schedgym.papers import list_claims, list_figures, make_figure
from tests.long import long

pytestmark = long

#: paper -> its figures, and what the sizes of each say; those of guan2022 need a trace
FIGURES = {
    "noroozoliaee2014": (["fig2", "fig3"], "2 draws of 60 tasks from a stand-in"),
    "shi2017": (["fig4", "fig5", "fig6"], "2 draws of "),
    "xu2021": (
        [f"fig{number}" for number in range(1, 13)],
        "2 draws of 100 jobs that stand in for Google's, in 200 slots",
    ),
    "zheng2016": (["fig2a", "fig2b", "fig2c", "fig2d"], "2 draws of 20 jobs"),
}
NAMES = [f"{paper}/{name}" for paper, (names, _) in FIGURES.items() for name in names]


def test_every_figure_is_registered() -> None:
    assert sorted(NAMES) == sorted(entry.name for entry in list_figures(*FIGURES))


@pytest.mark.parametrize("name", NAMES)
def test_figures_are_written_as_they_are_drawn(name, tiny_run, tmp_path) -> None:
    (entry,) = list_figures(name)
    run = tiny_run(entry.paper.key)
    outcome, content = entry.make(run), make_figure(entry, run, tmp_path)
    assert {path.suffix for path in tmp_path.iterdir()} == {".csv", ".png", ".json"}
    assert (tmp_path / content["files"]["png"]).stat().st_size > 10_000
    assert json.loads((tmp_path / f"{entry.stem}.json").read_text()) == content
    assert FIGURES[entry.paper.key][1] in content["sizes"] == outcome.sizes
    assert content["remarks"] and content["reading"] == ", ".join(point.default for point in entry.under)
    # every statement is judged under each reading; those that are claims say what these say
    assert [said["name"] for said in content["claims"]] == [said.name for said in outcome.judged]
    assert bool(content["claims"]) == (name != "xu2021/fig1")  # which shows the data
    claims = {claim.name: claim.text for claim in list_claims(entry.paper.key)}
    for said in content["claims"]:
        assert not re.search(r"\bnan\b", said["measured"])
        assert said["claim"] == claims.get(said["name"], said["claim"])
        assert list(said["readings"]) == [words for words in entry.readings if words]
    table = pandas.read_csv(tmp_path / content["files"]["csv"], dtype={"panel": str, "x": str})
    drawn = []
    for number, panel in enumerate(outcome.panels, start=1):
        for series in panel.series:
            low, high = (ends or [math.nan] * len(series.x) for ends in (series.low, series.high))
            for points in zip(series.x, series.y, low, high, strict=True):
                drawn.append((panel.title or str(number), series.label, *points))
    assert table[["panel", "series"]].to_numpy().tolist() == [list(row[:2]) for row in drawn]
    for own, (_, _, x, *_) in zip(table.x, drawn, strict=True):
        assert own == x if isinstance(x, str) else float(own) == pytest.approx(x, rel=1e-5)
    for place, column in enumerate(("y", "low", "high"), start=3):
        assert table[column].tolist() == pytest.approx([row[place] for row in drawn], rel=1e-5, nan_ok=True)
    assert not (table.low > table.high).any()
