"""The figures of the papers on the tiny scale: all are there, and what is written is what is drawn."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pandas
import pytest

from schedgym.papers import list_claims, list_figures, make_figure
from schedgym.papers.guan2022 import runs
from tests.long import long, thinned
from tests.tables import entry

pytestmark = long

FIGURES = entry(__file__, "FIGURES")
NAMES = [f"{paper}/{name}" for paper, (names, _) in FIGURES.items() for name in names]


def test_every_figure_is_registered() -> None:
    assert sorted(NAMES) == sorted(entry.name for entry in list_figures(*FIGURES))


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """A short trace in the format of Facebook's: 80 jobs that read something, and 20 that do not."""
    rng = np.random.default_rng(3)
    path = tmp_path_factory.mktemp("trace") / "jobs.tsv"
    sizes = np.where(np.arange(100) % 5 == 0, 0, rng.lognormal(21, 2, 100)).astype(int)
    path.write_text("".join(f"job{i}\t{3 * i}\t3\t{size}\t0\t{size}\n" for i, size in enumerate(sizes)))
    return path


@pytest.mark.parametrize("name", thinned(NAMES, of=5))
def test_figures_are_written_as_they_are_drawn(name, tiny_run, trace, tmp_path, monkeypatch) -> None:
    (entry,) = list_figures(name)
    run = tiny_run(entry.paper.key)
    monkeypatch.setattr(runs, "fetch", {"facebook-2010": trace}.get if "Facebook" in entry.title else None)
    default = next(iter(entry.readings.values()))
    outcome, content = entry.make(run.alone(entry.name, default)), make_figure(entry, run, tmp_path)
    assert {path.suffix for path in tmp_path.iterdir()} == {".csv", ".png", ".json"}
    assert (tmp_path / content["files"]["png"]).stat().st_size > 10_000
    assert json.loads((tmp_path / f"{entry.stem}.json").read_text()) == content
    assert FIGURES[entry.paper.key][1] in content["sizes"] == outcome.sizes
    assert ("Facebook" in entry.title) == ("Facebook trace" in outcome.sizes)
    assert content["remarks"] and content["reading"] == ", ".join(point.default for point in entry.under)
    # every statement is judged under each reading; those that are claims say what these say, but for the
    # thesis, whose figures have words of their own
    assert [said["name"] for said in content["claims"]] == [said.name for said in outcome.judged]
    assert bool(content["claims"]) == (name != "xu2021/fig1")  # which shows the data
    claims = {claim.name: claim.text for claim in list_claims(entry.paper.key)}
    for said in content["claims"]:
        assert not re.search(r"\bnan\b", said["measured"])
        assert said["claim"] == claims.get(said["name"], said["claim"]) or entry.paper.key == "guan2022"
        assert list(said["readings"]) == [words for words in entry.readings if words]
    table = pandas.read_csv(tmp_path / content["files"]["csv"], dtype={"panel": str, "x": str})
    drawn = []
    for number, panel in enumerate(outcome.panels, start=1):
        for series in panel.series:
            assert panel.kind == "bars" or (np.diff(series.x) > 0).all()
            if panel.kind == "curves" and panel.y_label.startswith("share of the "):
                assert (np.diff(series.y) >= -1e-12).all() and 0 <= series.y[0] <= series.y[-1] <= 1 + 1e-12
            low, high = (ends or [math.nan] * len(series.x) for ends in (series.low, series.high))
            for points in zip(series.x, series.y, low, high, strict=True):
                drawn.append((panel.title or str(number), series.label, *points))
    assert table[["panel", "series"]].to_numpy().tolist() == [list(row[:2]) for row in drawn]
    for own, (_, _, x, *_) in zip(table.x, drawn, strict=True):
        assert own == x if isinstance(x, str) else float(own) == pytest.approx(x, rel=1e-5)
    for place, column in enumerate(("y", "low", "high"), start=3):
        assert table[column].tolist() == pytest.approx([row[place] for row in drawn], rel=1e-5, nan_ok=True)
    assert not (table.low > table.high).any()
