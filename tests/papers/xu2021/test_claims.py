"""The claims of xu2021 on the small scale: verdicts as recorded, instances checked by the plain oracle."""

from __future__ import annotations

import copy
import math
import random
from fractions import Fraction as F

import pytest

from schedgym.papers import Verdict, list_claims
from schedgym.papers.xu2021 import reference as tiny
from schedgym.papers.xu2021.fractional_flowtime import _nested
from schedgym.papers.xu2021.memory import _operations
from tests.flowtime import oracle
from tests.long import long
from tests.papers.recorded import check_recorded, instance_of

pytestmark = long

PAPER = "xu2021"
CLAIMS = [entry.name for entry in list_claims(PAPER)]


def given(found):
    """The instance for the oracle, and its jobs."""
    jobs = [
        oracle.Job(a, p, d)
        for a, p, d in zip(found["arrival"], found["processing"], found["cpu"], strict=True)
    ]
    return oracle.Instance(jobs, [found["cores"]])


def replayed(instance, rows, k=1):
    """The oracle's outcome of a schedule: it checks all constraints, and that all jobs end."""
    outcome = oracle.replay(instance, [[[u] for u in row] for row in rows], k=k)
    assert None not in outcome.completion
    return outcome


def flow(instance, outcome, k=1):
    return sum(f**k for f in oracle.flowtimes(instance, outcome))


def fractional(instance, rows, k=1):
    """Eq. 5 over all jobs, exactly, by the oracle's sum for one job."""
    total = F(0)
    for j, job in enumerate(instance.jobs):
        rates = [F(row[j], job.cpu) for row in rows[job.arrival :]]
        total += oracle.fractional_flowtime(job.arrival, job.processing, rates, k)
    return total


@pytest.mark.parametrize("name", CLAIMS)
def test_verdicts_are_as_recorded(results, name) -> None:
    check_recorded(results[name])


# the tools against the oracle ------------------------------------------------------------------------


def tiny_instances(count, *, at_once=False):
    rng = random.Random(5)
    for _ in range(count):
        found = oracle.random_instance(rng, "1d", tiny=True, at_once=at_once)
        yield found, [(job.arrival, job.processing, job.cpu) for job in found.jobs], sum(found.cpu)


@pytest.mark.parametrize("name", sorted(tiny.RULES))
def test_rules(name) -> None:
    for instance, jobs, cores in tiny_instances(60):
        ends = oracle.simulate(instance, name).completion
        assert tiny.completions(jobs, tiny.rule(name, jobs, cores)) == ends


@pytest.mark.parametrize("k", [1, 2])
def test_optima(k) -> None:
    for instance, jobs, cores in tiny_instances(25):
        least, schedule = tiny.flowtime_best(jobs, cores, k)
        assert least == oracle.optimum(instance, k) == tiny.flowtime(jobs, schedule, k)
        assert tiny.feasible(jobs, cores, schedule)
        least, schedule = tiny.fractional_best(jobs, cores, k)
        assert float(least) == pytest.approx(oracle.optimal_fractional(instance, k), rel=1e-8)
        assert least == tiny.fractional(jobs, schedule, k)
        assert least == fractional(instance, [list(row) for row in schedule], k)
        if not any(job[0] for job in jobs) and k == 1:
            search = tiny.transient_least([d for _, _, d in jobs], cores)
            assert search(tuple(p * d for _, p, d in jobs)) == oracle.optimum(instance, 1)


def test_infeasible_schedules() -> None:
    jobs = [(0, 2, 1), (1, 1, 2)]
    assert tiny.feasible(jobs, 2, [(1, 0), (0, 2), (1, 0)])
    for rows in ([(1, 0), (1, 2)], [(2, 0), (0, 2)], [(0, 1), (1, 1), (1, 0)], [(1, 0), (0, 2)]):
        assert not tiny.feasible(jobs, 2, rows)


@pytest.mark.parametrize("start", [0, 20, 10**11])
@pytest.mark.parametrize("alpha", [0, 1, 30])
def test_gamma_and_literal_ocorp(start, alpha) -> None:
    for instance, jobs, cores in tiny_instances(40):
        gamma = oracle.eq27(instance)
        assert float(tiny.eq27(jobs, cores)) == gamma
        options = {"gamma": gamma, "literal": True, "lambda0": float(start), "limit": 60}
        if alpha:
            instance = instance._replace(cpu=[cores])  # on one server
            outcome = oracle.simulate(instance, "ocorp+", alpha=float(alpha), **options)
        else:
            outcome = oracle.simulate(instance, "ocorp", **options)
        own = tiny.literal_ocorp(
            jobs,
            cores,
            2,
            lambda job, g=gamma: job[1] / max(g - job[0], 1),
            lambda t: t**2.5,
            60,
            start,
            alpha,
        )
        rows = [tuple(sum(row) for row in u) for u in outcome.allocations]
        assert rows[: len(own)] == own


def test_slots_with_memory() -> None:
    rng = random.Random(7)
    for _ in range(150):
        servers, count = rng.randint(1, 2), rng.randint(1, 3)
        cpu = [rng.randint(1, 3) for _ in range(servers)]
        memory = [rng.randint(1, 4) for _ in range(servers)]
        worth, caps, reserve = (
            tuple(rng.randint(1, most) for _ in range(count)) for most in (5, 4, max(memory))
        )
        slot = tiny.Slot(worth, caps, reserve, tuple(cpu), tuple(memory))
        order = sorted(range(count), key=lambda j: (-worth[j], j))
        values = [F(w) for w in worth]
        placement, rounds = oracle.memory_allocation(
            order, values, caps, reserve, cpu, memory, backfill=False
        )
        _, kept = tiny.alternate(slot)
        assert tiny.value(kept[-1], worth) == oracle.placement_value(placement, values)
        assert len(kept) == rounds
        best = oracle.optimal_placement_value(values, caps, reserve, cpu, memory)
        assert tiny.best_value(slot) == best == tiny.plain_best(slot)


def test_operations_of_a_slot() -> None:
    """Jobs on servers, and cells of knapsacks, as the oracle packs."""
    rng = random.Random(8)
    for _ in range(200):
        servers, count = rng.randint(1, 4), rng.randint(1, 6)
        cpu = [rng.randint(1, 5) for _ in range(servers)]
        memory = [rng.randint(1, 6) for _ in range(servers)]
        worth, caps, reserve = (tuple(rng.randint(1, 6) for _ in range(count)) for _ in range(3))
        order = sorted(range(count), key=lambda j: (-worth[j], j))
        rows = oracle.pack(oracle.fill(order, caps, sum(cpu)), cpu)
        pairs = [(j, i) for j, row in enumerate(rows) for i, cores in enumerate(row) if cores]
        found = _operations(tiny.Slot(worth, caps, reserve, tuple(cpu), tuple(memory)))
        assert found == (
            len(pairs),
            sum(memory[i] for _, i in pairs),
            count * max(memory),
            (count + servers - 1) * max(memory),
        )
        assert found.cells <= found.corrected


# instances, by the oracle ------------------------------------------------------------------------------


def test_theorem_6(results) -> None:
    found = instance_of(results, "theorem-6")
    assert (found["processing"], found["cpu"], found["cores"]) == ([1, 3], [2, 1], 2)
    assert (found["svf"], found["better"]) == ("8", "15/2")
    instance = given(found)
    rows = [[sum(row) for row in u] for u in oracle.simulate(instance, "svf-transient").allocations]
    assert fractional(instance, rows) == 8
    replayed(instance, found["schedule"])
    assert fractional(instance, found["schedule"]) == F(15, 2)
    assert oracle.optimal_fractional(instance, 1) == pytest.approx(7.5)


def test_what_is_no_bound(results) -> None:
    found = instance_of(results, "surrogate-is-no-bound")
    instance = given(found)
    assert flow(instance, replayed(instance, found["schedule"])) == oracle.optimum(instance, 1) == 1
    assert oracle.optimal_fractional(instance, 1) == pytest.approx(2.0)
    found = instance_of(results, "pooled-srpt-is-no-bound")
    instance = given(found)
    own = flow(instance, oracle.simulate(instance, found["rule"]))
    assert own == found["pooled"] > oracle.optimum(instance, 1) == found["flowtime"]
    assert flow(instance, replayed(instance, found["schedule"])) == found["flowtime"]
    assert oracle.one_machine_srpt(instance) <= found["flowtime"]


def test_fractional_flowtime_below_the_actual_one(results) -> None:
    found = instance_of(results, "fractional-above-actual")
    instance = given(found)
    outcome = oracle.simulate(instance, "ocorp", gamma=found["gamma"], literal=True, lambda0=0.0)
    assert outcome.completion == found["completions"]
    assert sum(outcome.fractional) == pytest.approx(float(F(found["fractional"])))
    assert flow(instance, outcome, 2) == found["actual"] > sum(outcome.fractional)


def test_theorem_4(results) -> None:
    found = instance_of(results, "theorem-4")
    instance = given(found)
    assert oracle.eq27(instance) == found["T"]
    regret = fractional(instance, found["schedule"], found["k"])
    assert regret == F(found["regret"])
    best = max(oracle.optimal_fractional(instance, found["k"]), oracle.optimum(instance, found["k"]))
    rate = max(job.processing / job.cpu for job in instance.jobs)
    assert regret > sum(instance.cpu) * best / 2 * rate


def test_the_future_changes_a_decision(results) -> None:
    found = instance_of(results, "equation-27-online")
    jobs = [oracle.Job(*job) for job in found["jobs"]]
    both = [oracle.Instance(own, [1]) for own in (jobs, [*jobs, oracle.Job(*found["later_job"])])]
    slot = found["slot"]
    assert found["later_job"][0] >= slot  # not visible yet
    cores = []
    for instance in both:
        gamma = oracle.eq27(instance)
        outcome = oracle.simulate(instance, "ocorp", gamma=gamma, literal=True, lambda0=0.0, limit=slot)
        cores.append(sum(outcome.allocations[slot - 1][0]))
    assert cores == found["cores_in_slot"] and cores[0] != cores[1]


def test_slots_of_p3(results) -> None:
    for name in ("theorem-1-iterations", "theorem-2", "alternation"):
        found = instance_of(results, name)
        worth, caps, reserve, cpu, memory = (
            found[key] for key in ("worth", "caps", "reserve", "cpu", "memory")
        )
        values = [F(w) for w in worth]
        order = sorted(range(len(worth)), key=lambda j: (-worth[j], j))
        placement, rounds = oracle.memory_allocation(
            order, values, caps, reserve, cpu, memory, backfill=False
        )
        reached = oracle.placement_value(placement, values)
        best = oracle.optimal_placement_value(values, caps, reserve, cpu, memory)
        if name == "theorem-1-iterations":
            assert rounds == 3 and placement == found["second"] != found["first"]
            continue
        assert (reached, best) == (found["reached"], found["optimum"])
        if name == "theorem-2":
            assert reached == best and F(found["ratio"]) > 1
        else:
            assert reached < best


def test_jobs_on_a_server(results) -> None:
    found = instance_of(results, "jobs-on-a-server")
    rows = oracle.pack(found["cores"], found["cpu"])
    assert rows == found["placement"]
    i = found["server"]
    assert max(found["demands"]) <= min(found["cpu"])
    assert sum(1 for row in rows if row[i]) > F(found["cpu"][i] - 2, min(found["demands"])) + 2


def test_splitting_is_cheaper(results) -> None:
    found = instance_of(results, "switching-cost")
    d, servers = found["cpu"], len(found["whole"])
    jobs = [oracle.Job(0, 2, d)]
    instance = oracle.Instance(jobs, [d] * servers)
    for which in ("whole", "split"):
        outcome = oracle.replay(instance, [[found["before"]], [found[which]], [found[which]]], k=1)
        assert oracle.switching_cost(instance, outcome)[1] == float(F(found[f"cost_{which}"]))
    assert F(found["cost_whole"]) > F(found["cost_split"])


def test_corollary_2(results) -> None:
    finding = results[f"{PAPER}/corollary-2"].finding
    found = finding.witness
    instance = given(found)
    assert flow(instance, oracle.simulate(instance, "svf-transient")) == found["svf"]
    assert flow(instance, replayed(instance, found["schedule"])) == found["optimum"]
    assert oracle.optimum(instance, 1) == found["optimum"]
    assert F(7, 6) < F(found["svf"], found["optimum"]) == F(finding.figures["worst_ratio"]) < F(3, 2)
    # brute force over tiny instances: 7/6, as (1, 1, 3) x (2, 2, 1) on 3 cores
    assert finding.figures["worst_tiny_ratio"] == "7/6"
    worst = given(finding.figures["worst_tiny"])
    own = flow(worst, oracle.simulate(worst, "svf"))
    assert F(own, int(oracle.optimum(worst, 1))) == F(7, 6)
    # without equal volumes: 6/5
    jobs = [oracle.Job(0, 1, 2), oracle.Job(0, 2, 5), oracle.Job(0, 6, 2)]
    untied = oracle.Instance(jobs, [6])
    assert F(flow(untied, oracle.simulate(untied, "svf")), int(oracle.optimum(untied, 1))) == F(6, 5)
    # the family: svf against srf, which is no less than the optimum
    cores, narrow, wide, slots = 10, 3, 4, 7
    jobs = [oracle.Job(0, slots, cores)] * wide + [oracle.Job(0, slots * cores, 1)] * narrow
    family = oracle.Instance(jobs, [cores])
    own, other = (flow(family, oracle.simulate(family, rule)) for rule in ("svf", "srf"))
    assert own / other == finding.figures["family"][str((cores, narrow, wide, slots))] > 7 / 6


def test_corollary_1(results) -> None:
    found = instance_of(results, "corollary-1")
    for count, horizon, gap in zip(found["unit_jobs"], found["T"], found["longest_gap"], strict=True):
        instance = oracle.Instance([oracle.Job(0, 1, 1)] * count, [1])
        assert oracle.eq27(instance) == horizon
        for rule in ("svf", "srpt", "fifo", "ocorp"):
            outcome = oracle.simulate(instance, rule, gamma=horizon)
            assert max(oracle.service_gaps(instance, outcome)) >= count - 1
        assert gap >= count - 1


def test_gamma(results) -> None:
    found = instance_of(results, "gamma-4000")
    assert max(2 * found["latest_arrival"], found["four_times_the_work"]) > found["gamma"] == 4000


def test_the_surrogate_keeps_no_constant_factor(results) -> None:
    """Played slot by slot: the smallest size first, which alone solves P2 here, and the least left first."""
    found = instance_of(results, "constant-factor")
    ratios = []
    columns = (found[name] for name in ("nested_jobs", "flowtime", "optimum"))
    for count, surrogate, optimum in zip(*columns, strict=True):
        jobs = _nested(count)
        flows = []
        for by_size in (True, False):
            left, total, t = [p for _, p, _ in jobs], 0, 0
            while any(left):
                here = [j for j, (a, _, _) in enumerate(jobs) if a <= t and left[j]]
                own = min(here, key=lambda j: (jobs[j][1] if by_size else left[j], jobs[j][0]))
                left[own] -= 1
                t += 1
                total += 0 if left[own] else t - jobs[own][0]
            flows.append(total)
        assert flows == [surrogate, optimum]
        ratios.append(surrogate / optimum)
    assert ratios == sorted(ratios) and ratios[-1] > 3 * ratios[0]


def test_the_surrogates_optimum_is_the_smallest_size_first() -> None:
    """On the first of these jobs, by exhaustive search, and no other order of slots costs as little."""
    jobs = _nested(2)[:4]
    instance = oracle.Instance([oracle.Job(*job) for job in jobs], [1])
    rows = tiny.rule("svf", jobs, 1)
    least = fractional(instance, rows)
    assert least == tiny.fractional_best(jobs, 1)[0]
    assert fractional(instance, tiny.rule("srpt", jobs, 1)) > least


def test_the_fit_bounds_the_unfinished_work_from_its_horizon_on() -> None:
    """By the oracle's sum over slots (Eq. 26) and its served slots; before the horizon it is no bound."""
    before, since = [], []
    for instance, _, _ in tiny_instances(60):
        gamma = oracle.eq27(instance)
        limit = math.ceil(gamma) + 2
        outcome = oracle.simulate(instance, "ocorp", gamma=gamma, literal=True, lambda0=0.0, limit=limit)
        done = F(0)
        for t, (used, fit) in enumerate(
            zip(outcome.used, oracle.fit_curve(instance, outcome, gamma), strict=True), start=1
        ):
            done += sum(F(amount, job.cpu) for amount, job in zip(used, instance.jobs, strict=True))
            left = sum(job.processing for job in instance.jobs if job.arrival < t) - done
            (before if t < gamma else since).append(fit - float(left))
    assert min(before) < -0.1 and min(since) > -1e-9
    assert len(since) > 60


# confirmations can fail --------------------------------------------------------------------------------

STATED = {
    "example-1": ("printed_addend", 3),
    "constant-factor": ("flowtime", [106, 1340, 18841]),
    "surrogate-is-no-bound": ("flowtime", 2),
    "pooled-srpt-is-no-bound": ("pooled", 5),
    "fractional-above-actual": ("gamma", 7.0),
    "theorem-1-iterations": ("second", [[1], [0]]),
    "theorem-1": ("cells", 3),
    "theorem-2": ("ratio", "1"),
    "alternation": ("memory", [2]),
    "equation-19": ("memory", 3),
    "jobs-on-a-server": ("jobs_there", 3),
    "lemma-1": ("cores", 2),
    "algorithm-1-line-7": ("completion", 5),
    "dynamic-regret": ("regret", "1"),
    "equation-26": ("T", 3),
    "theorem-4": ("regret", "3"),
    "equation-27-online": ("slot", 4),
    "gamma-4000": ("gamma", 10**6),
    "least-makespan": ("cores", 1),
    "step-size": ("exponent", "3/2"),
    "corollary-1": ("longest_gap", [1, 1, 1]),
    "switching-cost": ("cost_split", "1"),
    "transient-z": ("z", 1),
    "transient-horizon": ("slots", 1),
    "lemma-2": ("left", [1]),
    "theorem-6": ("svf", "15/2"),
    "equation-45": ("latency", [1, 1]),
}


@pytest.mark.parametrize(
    "name",
    [e.name for e in list_claims(PAPER) if {*e.recorded.values()} & {Verdict.REFUTED, Verdict.CORRECTED}],
)
def test_changed_counterexamples_are_not_confirmed(results, name) -> None:
    (entry,) = list_claims(name)
    found = copy.deepcopy(dict(results[name].finding.counterexample))
    assert entry.confirm(found)
    key, value = STATED[entry.name.partition("/")[2]]
    assert found[key] != value
    assert not entry.confirm(found | {key: value})


def test_changed_witnesses_are_not_confirmed(results) -> None:
    changes = {
        "corollary-2": {"ratio": "7/6"},
        "equation-6": {"processing": [2]},
        "fit-bounds-unfinished-work": {"served": ["1"]},
    }
    for name, change in changes.items():
        (entry,) = list_claims(f"{PAPER}/{name}")
        found = dict(results[entry.name].finding.witness)
        assert entry.confirm(found) and not entry.confirm(found | change)
