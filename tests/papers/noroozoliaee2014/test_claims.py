"""The claims of noroozoliaee2014: verdicts as recorded (small scale)."""

from __future__ import annotations

import pytest

from schedgym.papers import check_claims
from schedgym.papers.noroozoliaee2014.instances import OPEN
from tests.long import long, weekly

HEAD, WINDOW = (OPEN[name] for name in ("HEAD", "WINDOW"))

pytestmark = long

PAPER = "noroozoliaee2014"
BLOCKING, _, PASSING = HEAD.choices


# the experiments ---------------------------------------------------------------------------------------


def figures_of(results, name):
    """What a claim measured, by reading."""
    found = results[f"{PAPER}/{name}"].findings
    return {reading: finding.figures for reading, finding in found.items()}


@weekly
def test_figures(results) -> None:
    """Ten episodes a point; the bands are those of 60 episodes, and wide."""
    dp = figures_of(results, "figure-3-ffd-dp")[PASSING]
    assert dp["bf_exec"][0] == pytest.approx(1558, rel=0.2)
    assert dp["relative"][0] == pytest.approx(1.0, abs=0.25)
    assert abs(dp["relative"][-1]) < 0.2 < min(dp["relative"][:4])
    assert min(figures_of(results, "figure-3-fcfs")[""]["low"]) > 1
    window = figures_of(results, "figure-2-order")[f"{PASSING}, to the last arrival"]
    assert window["more"]["ffd-dp"] == 0 and window["less"]["ffd-dp"] > window["settings"] / 2
    levels = figures_of(results, "figure-2-levels")
    assert max(levels["to the last completion"]["levels"]["cpu"]) < 0.4
    assert 0.8 < min(levels["while tasks wait"]["levels"]["memory"]) < 0.92


@weekly
def test_figures_of_many_runs(results) -> None:
    nb = figures_of(results, "figure-3-ffd-nb")[PASSING]
    assert nb["relative"][0] == pytest.approx(1.2, abs=0.3)
    shares = figures_of(results, "dot-product")["a shorter average delay"]["shares"]
    assert min(share for share, _, _ in shares.values()) > 0.9


@weekly
def test_statements_on_ffd_under_both_readings(results) -> None:
    """With a front that blocks BF-EXEC is ahead in all settings, up to the last arrival."""
    window = figures_of(results, "figure-2-order")[f"{BLOCKING}, {WINDOW.default}"]
    assert set(window["more"]) == {"ffd-nb-blocking", "ffd-dp-blocking", "fcfs"}
    assert set(window["more"].values()) == {window["settings"]} == {16}
    ahead = figures_of(results, "outperforms")[f"{BLOCKING}, {WINDOW.default}"]
    assert ahead["clear"] == ahead["settings"] == 3 * 3 * 8  # metrics, rivals, numbers of servers
    passing = results[f"{PAPER}/figure-3-ffd-dp"].findings[PASSING]
    assert sum(low > 0 for low in passing.figures["low"]) == 7 and passing.verdict == "in part"  # of 8
    used = figures_of(results, "utilisation-is-not-delay")
    assert used[PASSING]["flawed"] != used[BLOCKING]["flawed"] > 0 == used[BLOCKING]["both"]


def test_seeds_decide_the_runs() -> None:
    """Claims of one check share their runs; another seed has others."""
    name = f"{PAPER}/figure-3-fcfs"
    first, again, other = (check_claims(name, scale="tiny", seed=s)[0].finding.figures for s in (0, 0, 1))
    assert first == again != other
    shared = check_claims(f"{PAPER}/figure-3-ffd-nb", scale="tiny")[0].finding.figures
    assert shared["bf_exec"] == first["bf_exec"] != other["bf_exec"]
