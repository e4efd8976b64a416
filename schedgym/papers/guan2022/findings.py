"""The thesis, its policies, and how findings about shares are stated and read."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from schedgym.papers import HOLDS, REFUTED, Finding, Shown, Verdict
from schedgym.papers.guan2022.share_search import Search
from schedgym.papers.registry import Claims

claim = Claims.of("guan2022")
OPEN = claim.points  # that the paper leaves open
NAMES = {"imf": "IMF", "amf": "AMF", "sig-amf": "SIG-AMF", "gamf": "GAMF", "sig-gamf": "SIG-GAMF"}
CLOSE = 1e-9  # of the solvers' floating-point shares, in slots
LEVELS = 1e-6  # levels of up to six jobs are multiples of 1/360 slots


def read_instance(instance: Shown) -> tuple[list[list[int]], list[int], list[list[int]], str]:
    """Return demand, slots, groups and policy of an instance that a finding shows."""
    return instance["demand"], instance["slots"], instance["groups"], instance["policy"]


def states(instance: Shown, **values: Fraction | Iterable[Fraction]) -> bool:
    """Return True if an instance states these values under their names; it may have no such entries."""
    shown = {name: str(x) if isinstance(x, Fraction) else [*map(str, x)] for name, x in values.items()}
    return all(instance.get(name, text) == text for name, text in shown.items())


def found_flaw(found: Search, verdict: Verdict = REFUTED, more: str = "", **figures: Any) -> Finding:
    """Return the finding of a search for a flaw: ``verdict`` with a counterexample, or that there is none."""
    if found.found is None:
        return found_nothing(found)
    text = f"this is the smallest counterexample in {found.looked()}" + (f"; {more}" if more else "")
    counted = {"enumerated": found.enumerated, "complete": found.complete()} | figures
    return Finding(verdict, text, counterexample=found.found, figures=counted)


def found_nothing(found: Search, more: str = "", **figures: Any) -> Finding:
    """Return the finding of a search that has found no counterexample."""
    text = f"no counterexample in {found.looked()}" + (f"; {more}" if more else "")
    counted = {"enumerated": found.enumerated, "random": found.drawn, "complete": found.complete()}
    return Finding(HOLDS, text, figures=counted | figures)
