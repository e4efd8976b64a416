"""Counts, searches, and the sentences of their findings."""

from __future__ import annotations

import pytest

from schedgym.papers import CORRECTED, HOLDS, NOT_REPRODUCED, REFUTED
from schedgym.papers.searches import Sentences, confirm_by, count, count_comparisons, smallest_flaw


def odd(number: int) -> dict[str, int] | None:
    return {"rest": number % 2} if number % 2 else None


def test_a_search_and_its_confirmation() -> None:
    searched = smallest_flaw([4, 7, 3, 5], odd, size=lambda number: number, show=lambda number: {"n": number})
    assert searched == (4, 3, {"n": 3, "rest": 1})
    confirm = confirm_by(lambda shown: shown["n"], odd)
    assert confirm(searched.found)
    assert not confirm({"n": 4, "rest": 1})  # it has no flaw
    assert not confirm({"n": 3, "rest": 2}) and not confirm({"n": 3})  # not the one that is shown
    say = Sentences("odd, as {more}")
    found = say.against(REFUTED, searched, {"even": 1}, more="7")
    assert found.evidence == "false in 3 of 4 instances; odd, as 7"
    assert found.figures == {"checked": 4, "flawed": 3, "even": 1} and found.counterexample["n"] == 3
    none = smallest_flaw([4, 8], odd, size=lambda number: number)
    found = say.against(REFUTED, none, more="7")
    assert found.verdict is HOLDS and found.evidence == "true in all 2 instances"


def test_counts() -> None:
    counted = count([1, 2, 3], lambda number: [number < 3, number > 0])
    assert counted == (3, 6, 1) and counted.true == 5
    found = Sentences("{true} of {checked}").counted(counted, "too_large")
    assert found.verdict is NOT_REPRODUCED and found.evidence == "5 of 3"
    assert found.figures == {"checked": 3, "too_large": 1}


def test_sentences_by_verdict() -> None:
    say = Sentences({"holds": "in all {n:,}", "otherwise": "not in {few[0]}"})
    instance = {"n": 1}
    for verdict, text, against, witness in (
        (HOLDS, "in all 1,000", None, instance),
        (CORRECTED, "not in 7", instance, None),
        (NOT_REPRODUCED, "not in 7", None, None),
    ):
        found = say(verdict, {"n": 1000}, counterexample=instance, witness=instance, few=[7])
        assert (found.verdict, found.evidence) == (verdict, text)
        assert (found.counterexample, found.witness) == (against, witness)
    with pytest.raises(KeyError, match="few"):  # a number of another verdict's sentence, too
        say(HOLDS, {"n": 1000})
    with pytest.raises(KeyError, match="refuted"):
        Sentences({"holds": "always"})(REFUTED, {})
    with pytest.raises(ValueError, match="sometimes"):
        Sentences({"sometimes": "now"})


def test_comparisons_of_sorting_are_counted() -> None:
    assert count_comparisons(range(100)) == 99
    assert count_comparisons([2, 0, 3, 1]) > 3
