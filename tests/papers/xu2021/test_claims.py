"""The claims of xu2021 on the small scale: verdicts as recorded, figures, confirmations that fail."""

from __future__ import annotations

from fractions import Fraction as F

from schedgym.papers.xu2021.instances import pooled, read_instance, rule
from schedgym.papers.xu2021.model import flowtime
from tests.flowtime.optima import optimum
from tests.long import long

pytestmark = long

PAPER = "xu2021"


def test_no_constant_bounds_the_regret(results) -> None:
    """Of two jobs on one core, neither of which has to wait: they do until the prices reach their weights."""
    ratios = results[f"{PAPER}/theorem-4"].finding.figures["regrets"]
    assert ratios == [F(2 * (16 + 7), 4), F(2 * (64 + 7), 4), F(2 * (256 + 7), 4)]


def test_corollary_2(results) -> None:
    """The ratios of smallest volume first, by brute force: that of the hill climb is the worst known."""
    finding = results[f"{PAPER}/corollary-2"].finding
    found, figures = finding.witness, finding.figures
    worst = read_instance(figures["worst_tiny"])
    untied = [(0, 1, 2), (0, 2, 5), (0, 6, 2)], 6  # no equal volumes
    for (jobs, cores), ratio in (
        (read_instance(found), F(found["ratio"])),
        (worst, F(7, 6)),
        (untied, F(6, 5)),
    ):
        own = flowtime(jobs, rule("svf", jobs, cores))
        assert F(own, int(optimum(pooled(jobs, cores), 1))) == ratio
    assert figures["worst_tiny_ratio"] == "7/6"
    assert F(7, 6) < F(found["ratio"]) == F(figures["worst_ratio"]) < F(3, 2)
    assert min(figures["family"].values()) > 7 / 6
