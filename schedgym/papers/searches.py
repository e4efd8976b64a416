"""Count cases, and search for counterexamples: the smallest instance with a flaw, and its finding."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from schedgym.evaluation.statements import Verdict
from schedgym.papers.judging import Confirm, Finding, Shown, judge

Case = TypeVar("Case")
NOT_SO = "not so: {figures}"  # the evidence of "not reproduced" where a claim has no text for it
Details = Mapping[str, Any] | None  # of what is wrong with a case; None if nothing is


class Counted(NamedTuple):
    """Numbers of cases, of what was said of them, and of what was false."""

    checked: int
    said: int
    false: int

    @property
    def true(self) -> int:
        """The number of what is true."""
        return self.said - self.false


def count(cases: Iterable[Case], predicate: Callable[[Case], bool | Iterable[bool]]) -> Counted:
    """Count how often a predicate is false.

    Args:
        cases: the cases to be checked.
        predicate: returns whether a case is true, or yields this for each thing that is said of a case.
    """
    checked = said = false = 0
    for case in cases:
        truths = predicate(case)
        truths = [truths] if isinstance(truths, bool) else list(truths)
        checked += 1
        said += len(truths)
        false += truths.count(False)
    return Counted(checked, said, false)


def count_comparisons(values: Sequence[int]) -> int:
    """Return how many comparisons of two values sorting takes."""
    count = 0

    def compare(a: int, b: int) -> int:
        nonlocal count
        count += 1
        return a - b

    sorted(values, key=functools.cmp_to_key(compare))
    return count


class Smallest:
    """The smallest of the examples that it sees.

    Attributes:
        found: the example as a finding shows it; None before the first.
    """

    def __init__(self) -> None:
        self.found: dict[str, Any] | None = None
        self._size: Any = None

    def see(self, size: Any, example: dict[str, Any]) -> None:
        """Keep an example if it is smaller than those before; sizes are whatever can be ordered."""
        if self.found is None or size < self._size:
            self.found, self._size = example, size


class Searched(NamedTuple):
    """Result of a search: the numbers of cases and of flawed cases, and the smallest flawed case."""

    checked: int
    flawed: int
    found: dict[str, Any] | None


def smallest_flaw(
    cases: Iterable[Case],
    flaw: Callable[[Case], Details],
    *,
    size: Callable[[Case], Any],
    show: Callable[[Case], Mapping[str, Any]] = lambda case: {},
) -> Searched:
    """Look for a flaw in all cases, and keep the smallest case that has one.

    Args:
        cases: the cases to be searched.
        flaw: returns details of what is wrong with a case, or None if nothing is.
        size: returns the size of a case, which can be ordered; of equal sizes the first case is kept.
        show: returns a case as a finding shows it, unless the details do; they are added to it.
    """
    checked = flawed = 0
    best = Smallest()
    for case in cases:
        checked += 1
        details = flaw(case)
        if details is None:
            continue
        flawed += 1
        best.see(size(case), {**show(case), **details})
    return Searched(checked, flawed, best.found)


def confirm_by(read: Callable[[Shown], Case], flaw: Callable[[Case], Details]) -> Confirm:
    """Return a confirmation: the instance that is shown has the flaw, with the details that are shown.

    Args:
        read: returns the case that a finding shows.
        flaw: what the search asks, by another method where there is one.
    """

    def confirm(shown: Shown) -> bool:
        details = flaw(read(shown))
        return details is not None and {**shown, **details} == shown

    return confirm


def found_against(
    verdict: Verdict,
    searched: Searched,
    text: str,
    what: str = "instances",
    *,
    figures: Mapping[str, Any] | None = None,
) -> Finding:
    """Return the finding of a search: ``verdict`` with the smallest counterexample, or "holds".

    Args:
        verdict: the verdict if there is a flaw.
        searched: result of :func:`smallest_flaw`.
        text: says what is wrong, and what holds instead.
        what: names the cases that were searched.
        figures: further counts, in addition to "checked" and "flawed".
    """
    figures = {"checked": searched.checked, "flawed": searched.flawed, **(figures or {})}
    if searched.found is None:
        return Finding(Verdict.HOLDS, f"true in all {searched.checked:,} {what}", figures=figures)
    evidence = f"false in {searched.flawed:,} of {searched.checked:,} {what}; {text}"
    return Finding(verdict, evidence, counterexample=searched.found, figures=figures)


class Sentences:
    """The evidence of a claim, as claims.yaml has it: with names of numbers, which each run fills in.

    Called with a verdict and figures, it returns the finding.

    Args:
        texts: verdict -> text in the language of ``str.format``; "otherwise" stands for all other verdicts;
            one text alone is for all of them. Without a text, "not reproduced" has the figures as evidence.

    Raises:
        ValueError: there is no such verdict.
    """

    def __init__(self, texts: str | Mapping[str, str]) -> None:
        known = {"otherwise": texts} if isinstance(texts, str) else dict(texts)
        rest = known.pop("otherwise", None)
        self._texts = {Verdict.NOT_REPRODUCED: NOT_SO} if rest is None else dict.fromkeys(Verdict, rest)
        self._texts |= {Verdict(verdict): text for verdict, text in known.items()}

    def __call__(
        self,
        verdict: Verdict,
        figures: Mapping[str, Any],
        *,
        counterexample: Shown | None = None,
        witness: Shown | None = None,
        **numbers: Any,
    ) -> Finding:
        """Return a finding; texts are filled with figures and further numbers.

        Args:
            verdict: verdict of this run.
            figures: those of the finding.
            counterexample: the instance of a verdict against the printed claim; left out with another one.
            witness: the instance of "holds"; left out with another verdict.
            numbers: what else texts name.

        Raises:
            KeyError: there is no text for the verdict, or a text, of any verdict, names an unknown number.
        """
        known = {"figures": figures, **figures, **numbers}
        filled = {one: text.format_map(known) for one, text in self._texts.items()}
        against = verdict in (Verdict.REFUTED, Verdict.CORRECTED)
        return Finding(
            verdict,
            filled[verdict],
            counterexample if against else None,
            witness if verdict is Verdict.HOLDS else None,
            figures,
        )

    def counted(self, counted: Counted, false: str) -> Finding:
        """Return the finding of what holds if nothing is false; ``false`` names in how many cases it is."""
        figures = {"checked": counted.checked, false: counted.false}
        return self(judge(not counted.false), figures, true=counted.true)

    def against(
        self,
        verdict: Verdict,
        searched: Searched,
        figures: Mapping[str, Any] | None = None,
        what: str = "instances",
        **numbers: Any,
    ) -> Finding:
        """Return the finding of a search: :func:`found_against` with the text of ``verdict``."""
        known = {"checked": searched.checked, "flawed": searched.flawed, **(figures or {})}
        text = self(verdict, known, counterexample=searched.found, **numbers).evidence
        return found_against(verdict, searched, text, what, figures=figures)
