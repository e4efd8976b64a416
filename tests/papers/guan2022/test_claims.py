"""The claims of guan2022: readings, the smallest lie, and instances of the specification."""

from __future__ import annotations

import functools
import itertools
from fractions import Fraction as F

from schedgym.papers import Verdict, list_claims
from schedgym.papers.guan2022 import model
from schedgym.papers.guan2022.assignment import _optimum
from schedgym.papers.guan2022.batches import settings
from tests.long import long, weekly
from tests.papers.guan2022.test_model import lp_useful
from tests.papers.recorded import instance_of
from tests.tables import entry

pytestmark = long

PAPER = "guan2022"


def parts(instance):
    groups = [tuple(group) for group in instance["groups"]]
    return instance["demand"], instance["slots"], groups


def test_measured_statements_run_under_each_reading(results) -> None:
    """Sections 3.4, 4.7 and 5.6: with intervals, and only they have verdicts between yes and no."""
    claims = list_claims(PAPER)
    measured = {claim.short for claim in claims if claim.check.__module__.endswith("experiments")}
    between = {Verdict.IN_PART, Verdict.NOT_REPRODUCED, Verdict.NOT_TOLD}
    for result in (results[claim.name] for claim in claims):
        points = [point.name for point in result.claim.under]
        if result.claim.short not in measured:
            assert not points and result.finding.verdict not in between
            continue
        assert points[0] == "durations" and len(result.findings) == 2 ** len(points)
        if result.claim.short.startswith(("amf", "gamf", "imf", "sig", "opt", "aggressive")):
            kind, _, rest = result.claim.short.partition("-")
            own = {"balance": ["balance"], "keeps-incentive": ["incentive"]}
            assert points[1:] == (own.get(rest, []) if kind in ("amf", "gamf") else [])
        else:
            assert points[1:] == ["evenness"]


def gains(slots, groups, most):
    """Two jobs under SIG-GAMF, up to so many tasks: lies that gain in every matrix, by the model."""
    limits = [sum(slots[j] for j in group) for group in groups]
    rows = [row for row in itertools.product(*(range(limit + 1) for limit in limits)) if any(row)]

    @functools.cache
    def aggregates(first, second):
        return model.aggregates_of([first, second], slots, groups, "sig-gamf")

    for truth, other in itertools.product(rows, repeat=2):
        if sum(truth) + sum(other) > most:
            continue
        honest = aggregates(truth, other)[0]
        for report in rows:
            # what it gets, and its tasks in the groups that it reports, bound what it can use
            if min(aggregates(report, other)[0], sum(map(min, truth, report))) > honest:
                useful = lp_useful([report, other], slots, groups, "sig-gamf", 0, truth, 1)
                if useful > honest + F(1, 10**6):
                    yield truth, other, report


@weekly
def test_the_lie_is_the_smallest(results) -> None:
    """By jobs, sites, groups, slots and tasks: the model finds none smaller, and finds it."""
    found = instance_of(results["guan2022/sig-gamf-strategy"])
    assert sum(map(sum, found["demand"])) == 6
    sizes = [(1, 1, slots, 99) for slots in range(1, 7)] + [(2, 1, slots, 99) for slots in range(2, 7)]
    sizes += [(2, 2, slots, 99) for slots in range(2, 6)] + [(2, 2, 6, 5)]
    for sites, kinds, total, most in sizes:
        for groups, slots in settings(sites, kinds, total):
            assert not list(gains(slots, groups, most)), (slots, groups)
    assert ((1, 2), (3, 0), (2, 2)) in list(gains([3, 3], [(0,), (1,)], 6))


# confirmations can fail ----------------------------------------------------------------------------


def confirm(name, **instance):
    (entry,) = list_claims(f"{PAPER}/{name}")
    return entry.confirm(instance)


def test_the_specifications_counterexamples() -> None:
    lie, envy = entry(__file__, "lie"), entry(__file__, "envy")
    assert confirm("sig-gamf-strategy", **lie)
    assert not confirm("sig-gamf-strategy", **(lie | {"report": [2, 0, 1], "useful_if_lying": "5/3"}))
    assert confirm("sig-gamf-envy", **envy)
    assert not confirm("sig-gamf-envy", **(envy | {"job": 2, "envies": 1, "useful": "8/3"}))
    # AMF and GAMF give no such thing on the same instances
    for policy in ("amf", "gamf"):
        demand, slots, groups = parts(envy)
        own = model.aggregates_of(demand, slots, groups, policy)
        for i, other in itertools.permutations(range(3), 2):
            assert lp_useful(demand, slots, groups, policy, other, demand[i], -1) <= own[i] + F(1, 10**6)


def test_the_optimum_by_hand() -> None:
    assert _optimum([[1], [1]], ((0, 1),), [1, 1]) == 2
    assert _optimum([[2], [1]], ((0,),), [1]) == 1 + 3
    assert _optimum([[2, 0], [0, 1]], ((0, 1), (0,)), [1, 1]) == 1 + 2
    assert _optimum([[3]], ((0,),), [2]) == 2
