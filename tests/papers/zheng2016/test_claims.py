"""The claims of zheng2016 on the small scale: verdicts as recorded, lemmas."""

from __future__ import annotations

from fractions import Fraction as F

import pytest

from schedgym.papers.zheng2016 import lemmas, model
from schedgym.papers.zheng2016.model import Instance, Job
from tests.long import long

pytestmark = long

PAPER = "zheng2016"


# the lemmas --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scale", "lemma"), [(0, lemmas._lemma_1), (2, lemmas._lemma_2)])
def test_other_prices_break_the_lemmas(monkeypatch, scale, lemma) -> None:
    """A lemma that were always found true would say nothing."""
    case = lemmas.Case(Instance((Job(1, 1, 2, 2, (1,), (2,)),), (1,)), False)
    assert all(lemma(case))
    slots = [
        slot._replace(
            **{name: tuple(scale * b for b in getattr(slot, name)) for name in ("least", "greatest")}
        )
        for slot in lemmas._slots(case)
    ]
    monkeypatch.setattr(lemmas, "_slots", lambda case: slots)
    assert not any(lemma(case))


def test_the_dual_of_lemma_3_5_by_hand() -> None:
    """Slot 1 serves the first job, slot 2 half of the second: beta = 1, 1 by the second, alpha = 2 - 1."""
    jobs = (Job(1, 2, 1, 1, (1,), (2,)), Job(1, 2, 2, 2, (1,), (1,)))
    case = lemmas.Case(Instance(jobs, (1,)), False)
    slots = lemmas._slots(case)
    assert [slot.x for slot in slots] == [(1, 0), (0, 1)]
    assert lemmas._dual(case, slots) == ([1, 1], [1, 0], 3)
    assert model.value(case.instance, [slot.x for slot in slots]) == 3
    # with v y - y^2 / 2 and v = 2 both get half of each slot, until their slopes are 3 / 2 and 1
    alike = Instance((jobs[0], jobs[1]._replace(values=(2,))), (1,))
    slots = lemmas._slots(lemmas.Case(alike, True))
    assert [slot.x for slot in slots] == [(F(1, 2), F(1, 2)), (F(1, 2), F(1, 2))]
    assert [slot.least for slot in slots] == [(F(3, 2),), (1,)]


# figures -----------------------------------------------------------------------------------------------


def figures_of(results, name, reading=""):
    """What a claim counted or measured, under a reading."""
    return results[f"{PAPER}/{name}"].findings[reading].figures


def test_figures(results) -> None:
    family = figures_of(results, "theorem-3.2-bounded")["family"]
    # the specification's instance: 2.001 / 1.501
    assert F(family[1000]) == F(2001, 1501) and F(family[1]) == F(6, 5)
    assert figures_of(results, "lemma-3.3")["said"] > 50
    without = figures_of(results, "lemma-3.4")
    assert without["said"] > 300 and without["without_conditions"]["false"] > 100
    assert figures_of(results, "example-2") == pytest.approx({"sqrt": 1.0585, "log": 1.0866}, abs=5e-5)
    optima = figures_of(results, "fractional-bound", "offline optima")
    assert F(optima["smallest"]) < F(optima["largest"]) == 1
    theorem = figures_of(results, "theorem-4.1")
    assert F(theorem["largest_theta"]) > 2 and theorem["checked"] > 1000
    # the bound is reached by ties: (1 + theta) V is the optimum
    assert theorem["optimal"] == "1.0000"
    prices = figures_of(results, "primal-dual-factor", "numerator r_is")
    assert list(prices["taken"].values()) == [3, 4, 4]
    assert 0 < prices["part"] < 1 and prices["infeasible"] == 0
    aware = figures_of(results, "theorem-4.2")
    assert aware["family"][2][100_000] == pytest.approx(1.8, abs=2e-5)
    assert F(aware["C_3"]["ratio"]) > F(9, 5) and aware["beyond_corrected_bound"] == 0
    # rho = 2/3 as printed, and p rounded down
    assert aware["C_3_with_p_1_and_rho_2/3"] == pytest.approx(13 / 7, abs=0.002)
