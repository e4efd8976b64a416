"""Count cases, and search for counterexamples: the smallest instance with a flaw, and its finding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from schedgym.papers.judging import Finding, Verdict

__all__ = ["Counted", "Searched", "Smallest", "count", "found_against", "smallest_flaw"]

Case = TypeVar("Case")


class Counted(NamedTuple):
    """Numbers of cases, of what was said of them, and of what was false."""

    checked: int
    said: int
    false: int


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
    flaw: Callable[[Case], Mapping[str, Any] | None],
    *,
    size: Callable[[Case], Any],
    show: Callable[[Case], Mapping[str, Any]],
) -> Searched:
    """Look for a flaw in all cases, and keep the smallest case that has one.

    Args:
        cases: the cases to be searched.
        flaw: returns details of what is wrong with a case, or None if nothing is.
        size: returns the size of a case, which can be ordered; of equal sizes the first case is kept.
        show: returns a case as a finding shows it; the details are added to it.
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
