"""Figures of guan2022: all are there and run; what is observed is what a recount by hand gives."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from scipy.integrate import quad

from schedgym.core.policy import make_policy
from schedgym.evaluation.comparison import Observed
from schedgym.evaluation.episodes import make_env, play
from schedgym.papers import list_figures, make_figure
from schedgym.papers.guan2022 import experiments, runs
from schedgym.papers.guan2022.share_search import OPEN
from schedgym.papers.judging import HOLDS, IN_PART, NOT_REPRODUCED, NOT_TOLD
from schedgym.problems.geo.workload import PARETO_LEAST, PARETO_SHAPE
from tests.evaluations import evaluation_of
from tests.long import long
from tests.tables import table

pytestmark = long


def entry(name):
    (found,) = list_figures(f"guan2022/{name}")
    return found


def absent(name):
    raise OSError("no network")


def test_figures_of_skews_and_of_sites_share_runs(run) -> None:
    jobs = runs.fitted(run)
    by_skew = runs.assigned(run, jobs)
    by_sites = runs.assigned_by_sites(run, jobs, jobs.utilizations)
    assert set(by_skew.spent) & set(by_sites.spent)
    for policy in runs.ASSIGNERS:
        same = by_skew.metric(policy, runs.RESPONSE, zipf=1.0)
        assert (by_sites.metric(policy, runs.RESPONSE, choices=2) == same).all()
    alone = by_sites.metric("ATA", runs.RESPONSE, choices=1)
    assert (alone != by_sites.metric("ATA", runs.RESPONSE, choices=2)).any()


def test_readings_are_those_of_the_chapter_and_the_axes_of_means_start_at_zero(run) -> None:
    for found in list_figures("guan2022"):
        chapter = int(found.short.removeprefix("fig").removeprefix("table")[0])
        points = [OPEN[f"DURATIONS_{chapter}"]] + [OPEN["EVENNESS"]] * (chapter == 3)
        assert list(found.under) == ([] if found.short == "table3.1" else points)
    for name in ("fig3.11", "fig3.15", "fig4.6", "fig5.3"):
        means, ratios = np.reshape(np.array(entry(name).make(run).panels, dtype=object), (2, -1))
        assert all(panel.y_from_zero for panel in means) and not any(panel.y_from_zero for panel in ratios)
        for one in (series for panel in means for series in panel.series if not series.bound):
            assert np.all(0 < np.array(one.low)) and np.all(np.array(one.low) <= one.y)
            assert np.all(one.y <= np.array(one.high))
        for mean, ratio in zip(means, ratios, strict=True):
            heights = {series.label: np.array(series.y) for series in mean.series}
            rival = ratio.y_label.removeprefix("response time / ").removesuffix("'s")
            for series in ratio.series:
                assert series.y == pytest.approx(heights[series.label] / heights[rival])


def test_without_the_trace_the_error_says_how_to_get_it(run, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(runs, "fetch", absent)
    with pytest.raises(FileNotFoundError, match="`schedgym trace fetch facebook-2010` .no network."):
        make_figure(entry("fig4.2"), run, tmp_path)


# what is observed ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ended():
    """Two environments at the end of an episode: of either id."""
    parameters = {"jobs": 40, "sites": 4, "slots": 3, "duration_cap": 60.0}
    played = {}
    for id, policy in ((runs.ASSIGN, "ata"), (runs.FAIR, "opt-gamf")):
        env = make_env(id, parameters)
        played[id] = env, play(env, make_policy(f"geo/{policy}"), seed=1).metrics
    return played


def by_hand(record):
    """Responses [s] by job; (deviation, seconds) of all pieces of time up to the last arrival."""
    arrival = record.workload.jobs["arrival"]
    owner = [int(record.workload.tasks["job"][task]) for task in record.job]
    completion = [
        max(e for e, o in zip(record.end, owner, strict=True) if o == i) for i in range(len(arrival))
    ]
    instants = sorted({*arrival, *record.start, *record.end})
    pieces = []
    for begin, end in zip(instants, instants[1:], strict=False):
        active = [i for i in range(len(arrival)) if arrival[i] <= begin < completion[i]]
        if not active or begin >= arrival[-1]:
            continue
        held = dict.fromkeys(active, 0)
        for o, s, e in zip(owner, record.start, record.end, strict=True):
            if s <= begin < e:
                held[o] += 1
        pieces.append((float(np.std(list(held.values()))), end - begin))
    return np.array(completion) - arrival, pieces


@pytest.mark.parametrize("id", [runs.ASSIGN, runs.FAIR])
def test_observers_agree_with_a_recount(id, ended) -> None:
    env, metrics = ended[id]
    responses, pieces = by_hand(env.record())
    seen = runs.response_curve(env)
    for at in (15, 30, 50):
        place = runs.RESPONSES[at] * 2.0  # of the mean duration [s]
        assert seen["shares"][at] == pytest.approx(np.mean(responses <= place))
    assert 0 < seen["shares"][15] < seen["shares"][30] < seen["shares"][50]
    assert seen["percentiles"][[49, 89]] == pytest.approx(
        [metrics["median_response"], metrics["p90_response"]]
    )
    spread, length = runs.deviations(env.record())
    total = sum(seconds for _, seconds in pieces)
    assert length.sum() == pytest.approx(total)
    assert (spread * length).sum() / total == pytest.approx(sum(s * x for s, x in pieces) / total)
    assert (spread * length).sum() / total == pytest.approx(metrics["mean_std_no_drain"])
    shares = runs.deviation_curve(env)
    for at in (0, 1, 2, 4):
        place = runs.SPREADS[at]
        expected = sum(x for s, x in pieces if s <= place) / total
        assert shares[at] == pytest.approx(expected)
    assert shares[0] < shares[1] < shares[4] and shares[-1] == pytest.approx(1.0)


def waiting_by_hand(record):
    """The standard deviation of the sites' queues, averaged up to the last arrival."""
    arrival = record.workload.jobs["arrival"]
    born = arrival[record.workload.tasks["job"][record.job]]
    instants = sorted({*arrival, *(t for t in record.start if t < arrival[-1])})
    total = 0.0
    for begin, end in zip(instants, instants[1:], strict=False):
        queues = [0] * len(record.workload.cluster["slots"])
        for b, s, site in zip(born, record.start, record.server, strict=True):
            queues[site] += bool(b <= begin < s)
        total += float(np.std(queues)) * (end - begin)
    return total / (arrival[-1] - arrival[0])


def variation_by_hand(record):
    """Deviation over mean of a job's running tasks from its arrival to its end, averaged over larger jobs."""
    owner = record.workload.tasks["job"][record.job]
    found = []
    for job, arrival in enumerate(record.workload.jobs["arrival"]):
        own = [(s, e) for s, e, o in zip(record.start, record.end, owner, strict=True) if o == job]
        if len(own) < 2:
            continue
        instants = sorted({arrival, *(t for pair in own for t in pair)})
        held = [sum(s <= t < e for s, e in own) for t in instants[:-1]]
        length = np.diff(instants)
        mean = np.average(held, weights=length)
        found.append(np.sqrt(np.average((np.array(held) - mean) ** 2, weights=length)) / mean)
    return float(np.mean(found))


def test_queues_and_lifetimes_agree_with_a_recount(ended) -> None:
    env = make_env(
        runs.ASSIGN, {"jobs": 40, "sites": 4, "slots": 2, "utilization": 0.9, "duration_cap": 60.0}
    )
    play(env, make_policy("geo/btawj-swag"), seed=1)
    assert runs.queue_spread(env) == pytest.approx(waiting_by_hand(env.record()))
    assert runs.queue_spread(env) > 0.0
    fair, _ = ended[runs.FAIR]
    assert runs.lifetime_variation(fair) == pytest.approx(variation_by_hand(fair.record()))


def test_decided_balance_is_that_of_the_solvers(run) -> None:
    """AMF's aggregates deviate no more than IMF's at any decision, so neither on average."""
    found = experiments.judge_decided(run, runs.fitted(run), "AMF", "IMF")
    assert found.measured.startswith("mean deviation of the decided aggregates: AMF against IMF")
    back = experiments.judge_decided(run, runs.fitted(run), "IMF", "AMF")
    assert back.verdict == NOT_REPRODUCED


def test_the_worked_example_is_that_of_the_text(run) -> None:
    times, waiting = entry("table3.1").make(run).panels
    means = {series.label: series.y[-1] for series in times.series}
    least = dict.fromkeys(("ATA", "ATA-Greedy", "optimum"), 17 / 3)
    assert means == pytest.approx({"BTAwJ": 22 / 3, "BTAaJ": 20 / 3, "SCTA": 19 / 3} | least)
    assert all(sum(series.y) == 24 for series in waiting.series)  # of 29 tasks, five have started


def test_the_stand_in_has_the_mean_that_it_names() -> None:
    cap = runs.TRACE_DAYS * runs.DAY
    least = PARETO_LEAST * runs.mean_before_cap(runs.GOOGLE_MEAN, cap)
    tail, _ = quad(lambda x: (least / x) ** PARETO_SHAPE, least, cap, limit=500, epsrel=1e-10)
    assert least + tail == pytest.approx(1374.7, rel=1e-6)


@pytest.mark.parametrize(
    ("policy", "slots", "demand", "kept"), table(__file__, "test_sharing_incentive_of_known_instances")
)
def test_sharing_incentive_of_known_instances(policy, slots, demand, kept) -> None:
    sites = np.arange(2)[:, None]
    assert experiments.has_incentive(np.array(demand), sites, np.array(slots), policy) is kept
    jobs = experiments.jobs_with_incentive(np.array(demand), sites, np.array(slots), policy)
    assert jobs.tolist() == [kept, *[True] * (len(demand) - 1)]  # only the first job may go without


def test_incentives_are_counted_over_an_episode() -> None:
    env = make_env(runs.FAIR, {"jobs": 30, "sites": 3, "slots": 2, "utilization": 0.9})
    held, seen = experiments.count_incentives(env, experiments.has_incentive, "amf", 0, 10**6)
    assert 0 < held < seen
    metrics = play(env, make_policy("geo/amf"), seed=0).metrics
    assert seen == metrics["recomputations"]
    few_held, few = experiments.count_incentives(env, experiments.has_incentive, "amf", 0, 10)
    assert 10 <= few < 20 and few_held <= few


def test_sub_jobs_of_known_instances() -> None:
    """On two sites with 4 slots the first job has 2 and 4, the second has 2."""
    demand, slots = np.array([[10, 10], [10, 0]]), np.array([4, 4])
    for decisions in ([demand], [demand, np.array([[1, 1], [9, 9]])]):  # the second of which says nothing
        assert experiments.sub_jobs_exponent(decisions, slots) == pytest.approx(np.log2(3.0))
    demand, shares = np.array([[2, 4], [1, 0], [2, 4], [3, 3]]), np.array([[1, 1], [1, 0], [1, 2], [1.5, 0]])
    assert experiments.served_unevenly(demand, shares).tolist() == [True, False, True]


# rules -----------------------------------------------------------------------------------------------


def evaluation(frame, swept, observed=()):
    return evaluation_of(frame, "schedgym/GeoAssign-v0", "mean_response", swept=swept, observed=observed)


def made_up(table):
    """Runs with these responses: (policy, utilization, zipf) -> of each episode; rows in a mixed order."""
    rows = [
        {"policy": p, "utilization": u, "zipf": z, "episode": e, "metric": "mean_response", "value": value}
        for (p, u, z), values in table.items()
        for e, value in enumerate(values)
    ]
    return evaluation(pandas.DataFrame(rows).sample(frac=1, random_state=0), ("utilization", "zipf"))


def test_trends() -> None:
    noise = np.array([0.9, 1.0, 1.1, 1.3])
    table = {("a", 0.5, z): noise * (1 + z) for z in (0.0, 1.0, 2.0)}
    table |= {("b", 0.5, z): noise * height for z, height in ((0.0, 1.0), (1.0, 3.0), (2.0, 2.0))}
    table |= {("c", 0.5, z): noise * (3 - z) for z in (0.0, 1.0, 2.0)}
    played = made_up(table)
    for policy, verdict, change in (
        ("a", HOLDS, "3 times (3 to 3)"),
        ("b", IN_PART, "2 times (2 to 2)"),  # not in all steps
        ("c", NOT_REPRODUCED, "-66.7% (-66.7 to -66.7)"),
    ):
        judged = experiments.judge_trend("grows", played, [policy])
        measured = f"from 0 to 2: {policy} {change}"
        assert (judged.verdict, judged.measured) == (verdict, measured)
    falling = experiments.judge_trend("falls", played, ["a", "c"], falls=True)
    assert falling.verdict == IN_PART
    assert falling.measured == "from 0 to 2: a 3 times (3 to 3); c -66.7% (-66.7 to -66.7)"
    assert experiments.judge_gain_grows("gain", played, [("c", "a")]).verdict == HOLDS
    assert experiments.judge_gain_grows("gain", played, [("a", "c")]).verdict == NOT_REPRODUCED
    # at all utilisations together: 0.5 alone rises
    table |= {("a", 0.7, z): noise * (1 + z / 9) for z in (0.0, 1.0, 2.0)}
    table |= {("b", 0.7, z): noise for z in (0.0, 1.0, 2.0)}
    table |= {("c", 0.7, z): noise for z in (0.0, 1.0, 2.0)}
    both = experiments.judge_gain_grows("gain", made_up(table), [("c", "a")])
    assert both.verdict == HOLDS and both.measured.endswith("(4 of 4 steps so)")


def test_an_order_changes_only_where_both_signs_are_significant() -> None:
    base = np.array([10.0, 11.0, 12.0, 9.0])
    noise = np.array([1.2, 0.85, 1.1, 0.9])  # no significant difference
    for later, verdict in ((base * 0.8, HOLDS), (base * noise, HOLDS), (base * 1.2, IN_PART)):
        table = {(policy, u, z): base for policy in runs.ASSIGNERS for u in (0.5, 0.7) for z in (0.0, 1.0)}
        table |= {("SWAG", 0.5, z): base / 0.9 for z in (0.0, 1.0)}  # BTAaJ is ahead there
        table |= {("SWAG", 0.7, z): base**2 / later for z in (0.0, 1.0)}
        judged = experiments.SENTENCES["same-at-all-utilizations"].judge(made_up(table))
        assert judged.verdict == verdict, judged.measured


@pytest.mark.parametrize(
    ("between", "noise", "verdict"),
    [(0.3, 0.0, HOLDS), (0.3, 0.9, NOT_TOLD), (0.05, 0.0, NOT_REPRODUCED)],
)
def test_two_groups_are_farther_apart_than_their_curves(between, noise, verdict) -> None:
    """In every draw alike, in one draw of two, and less than the curves of a group, which are 0.1 apart."""
    observed = []
    for episode in range(8):
        for i, policy in enumerate([*runs.AMF, *runs.GAMF]):
            far = between * (policy in runs.GAMF) * (1.0 - noise * (episode % 2))
            curve = np.array([0.0, 0.1 * (i % 2) + far, 1.0])
            observed.append(Observed({"zipf": 1.0}, policy, episode, 0.0, curve))
    rows = [
        {"policy": own.policy, "zipf": 1.0, "episode": own.episode, "metric": "mean_response", "value": 1.0}
        for own in observed
    ]
    played = evaluation(pandas.DataFrame(rows), ("zipf",), observed)
    assert experiments.judge_two_groups(played).verdict == verdict


def test_a_percentile_counts_only_where_it_is_significant() -> None:
    """Lower at all percentiles: it holds; at half of them, higher at none: in part; at a tenth: not."""
    rng = np.random.default_rng(2)
    rows = [
        {"policy": p, "utilization": 0.5, "episode": e, "metric": "mean_response", "value": 1.0}
        for p in runs.ASSIGNERS
        for e in range(6)
    ]
    frame = pandas.DataFrame(rows)
    for lower, verdict in ((99, HOLDS), (55, IN_PART), (10, NOT_REPRODUCED)):
        observed = []
        for episode in range(6):
            base = 1.0 + rng.random(99) * 0.01
            for policy in runs.ASSIGNERS:
                own = base * np.where(np.arange(99) < lower, 0.5, 1.0) if policy.startswith("ATA") else base
                observed.append(Observed({"utilization": 0.5}, policy, episode, 0.0, {"percentiles": own}))
        assert experiments.judge_percentiles(evaluation(frame, ("utilization",), observed)).verdict == verdict


def test_levels_and_little_differences() -> None:
    base = np.array([10.0, 11.0, 12.0, 9.0])
    both = lambda other: made_up({("ATA", 0.5, 0.0): base, ("ATA-Greedy", 0.5, 0.0): other})  # noqa: E731
    pair = [("ATA-Greedy", "ATA")]
    wide = base + np.array([-0.8, 0.9, -0.7, 0.6])
    for other, level, little in (
        (base * 1.01, HOLDS, HOLDS),
        (base * 1.04, NOT_REPRODUCED, HOLDS),
        (base * 1.5, NOT_REPRODUCED, NOT_REPRODUCED),
        (base * 0.99, HOLDS, NOT_REPRODUCED),
        (wide, IN_PART, NOT_TOLD),
        (wide + 0.1, IN_PART, IN_PART),  # a little worse, but not significantly
        (wide - 0.1, IN_PART, NOT_TOLD),
    ):
        assert experiments.judge_within("level", both(other), pair, -0.02, 0.02).verdict == level
        assert experiments.SENTENCES["greedy-against-ata"].judge(both(other)).verdict == little
    curve = [np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.7, 1.0])]
    near, far = ([own + [0, apart, 0] for own in curve] for apart in (0.04, 0.07))
    gap = experiments.judge_distance("", {"": (curve, near)})
    assert str(gap) == "+4.0 points (+4.0 to +4.0)" and gap.verdict == HOLDS
    some = {"at 1": (curve, near), "at 2": (curve, curve), "at 3": (curve, far)}
    gap = experiments.judge_distance("", some)  # 3.7 points in the mean, but 7 in one setting
    assert gap.value == pytest.approx(0.11 / 3) and (gap.verdict, gap.contrary) == (IN_PART, 1)
