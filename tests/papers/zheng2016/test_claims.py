"""The lemmas of zheng2016: their checks can fail, and the dual solution by hand."""

from __future__ import annotations

from fractions import Fraction as F

import pytest

from schedgym.papers.zheng2016 import lemmas, model
from schedgym.papers.zheng2016.model import Instance, Job
from tests.long import long

pytestmark = long


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
