"""The claims of noroozoliaee2014: verdicts as recorded (small scale), instances checked by the oracle."""

from __future__ import annotations

import copy
import itertools
import math
from fractions import Fraction as F

import numpy as np
import pytest

from schedgym.papers import check_claims, list_claims
from schedgym.papers.noroozoliaee2014 import model as tiny
from schedgym.papers.noroozoliaee2014.bounds import _lower, _upper
from schedgym.papers.noroozoliaee2014.instances import read_instance, show_instance
from schedgym.papers.noroozoliaee2014.readings import HEAD, WINDOW
from tests.long import long
from tests.papers.recorded import check_recorded, in_minutes, instance_of
from tests.queue_delay import oracle

pytestmark = long

PAPER = "noroozoliaee2014"
CLAIMS = [entry.name for entry in list_claims(PAPER)]
BLOCKING, _, PASSING = HEAD.choices
WITH_INSTANCE = [name for name in CLAIMS if list_claims(name)[0].confirm is not None]


def plain(instance):
    """The oracle's tasks and servers; exact where the unit is a power of two."""
    unit = instance.unit
    tasks = [(float(a), float(e), c / unit, m / unit) for a, e, c, m in instance.tasks]
    return tasks, [(x / unit, y / unit) for x, y in instance.servers]


def simulated(found, scheme, **options):
    """The oracle's outcome of a scheme on the instance of a finding."""
    tasks, servers = plain(read_instance(found))
    return tasks, servers, oracle.simulate(tasks, servers, scheme, **options)


def total(found, scheme="bf-exec"):
    """The oracle's sum of delays."""
    tasks, _, outcome = simulated(found, scheme)
    return sum(oracle.delays(tasks, outcome))


@pytest.mark.parametrize("name", CLAIMS)
def test_verdicts_are_as_recorded(results, name) -> None:
    check_recorded(results[name])


# the tools against the oracle ------------------------------------------------------------------------


def drawn(count, seed=3, **sizes):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield tiny.draw(rng, **sizes)


@pytest.mark.parametrize("name", [name for name in tiny.SCHEMES if name != "bf-exec-before"])
def test_schemes(name) -> None:
    bypass = name.endswith("-bypass")
    blocking = bypass or name.endswith("-blocking")
    scheme = name.removesuffix("-bypass").removesuffix("-blocking")
    stranded = 0
    for instance in drawn(150):
        wanted = oracle.simulate(*plain(instance), scheme, blocking=blocking, bypass=bypass)
        found = tiny.simulate(instance, name)
        assert (list(found.start), list(found.server)) == (wanted.start, wanted.server)
        stranded += None in found.start
        assert tiny.feasible(instance, found) == (None not in found.start)
    assert (stranded > 0) == (name in ("ff", "bf", "wf"))


def test_measures_and_bounds() -> None:
    """Exact numbers against the oracle's sums over intervals, and its theorems."""
    for instance in drawn(150):
        tasks, servers = plain(instance)
        for name in ("bf-exec", "fcfs"):
            outcome = oracle.simulate(tasks, servers, name)
            wanted = oracle.metrics(tasks, servers, outcome)
            found = tiny.measure(instance, tiny.simulate(instance, name).start)
            exact = (found.delay, found.queued, found.running, found.beta, found.gap * len(tasks))
            names = ("mean_delay", "mean_queued", "mean_running", "beta", "makespan")
            assert [float(x) for x in exact] == pytest.approx([wanted[key] for key in names])
            theorem = oracle.theorem_bounds(tasks, servers, outcome)
            assert float(_upper(instance, found)) == pytest.approx(theorem["corrected_upper"])
            assert float(_lower(instance, found)) == pytest.approx(theorem["corrected_lower"])
            assert found.most == max(part.running for part in oracle._intervals(tasks, outcome))
            waits = [part.running for part in oracle._intervals(tasks, outcome) if part.queued]
            assert found.least == min(waits, default=None)
        most = max(t.cpu for t in instance.tasks), max(t.memory for t in instance.tasks)
        assert tiny.at_once(instance, most) == oracle.k_low(tasks, servers)


def test_optima_and_lower_bounds() -> None:
    """Against all starts on all servers, and the oracle's bounds."""
    improved = 0
    for instance in drawn(60, tasks=3, servers=2, longest=3):
        best, schedule = tiny.optimum(instance)
        assert tiny.feasible(instance, schedule)
        late = sum(task.execution for task in instance.tasks)
        least = math.inf
        for waits in itertools.product(range(late), repeat=len(instance.tasks)):
            if sum(waits) < least:
                start = tuple(task.arrival + w for task, w in zip(instance.tasks, waits, strict=True))
                for server in itertools.product(range(len(instance.servers)), repeat=len(start)):
                    if tiny.feasible(instance, tiny.Schedule(start, server)):
                        least = sum(waits)
                        break
        assert best == least
        tasks, servers = plain(instance)
        improved += best < sum(oracle.delays(tasks, oracle.simulate(tasks, servers, "bf-exec")))
        found = tiny.lower_bounds(instance)
        wanted = max(oracle.pooled_bound(tasks, servers, r) for r in (0, 1))
        assert float(found["pooled"]) == pytest.approx(wanted, abs=1e-9)
        if tasks[0][0] == tasks[-1][0]:
            assert float(found["batch"]) == pytest.approx(oracle.batch_bound(tasks, servers))
    assert improved > 0


def test_feasible_refuses() -> None:
    instance = tiny.Instance((tiny.Task(0, 2, 1, 1), tiny.Task(1, 1, 2, 1)), ((2, 2), (1, 2)), 2)
    assert tiny.feasible(instance, tiny.Schedule((0, 2), (0, 0)))
    assert tiny.feasible(instance, tiny.Schedule((0, 1), (1, 0)))
    for start, server in (
        ((0, 1), (0, 0)),
        ((0, 0), (1, 0)),
        ((0, 1), (1, 1)),
        ((0, None), (1, 0)),
        ((0, 1), (1, 2)),
    ):
        assert not tiny.feasible(instance, tiny.Schedule(start, server))


def test_random_schedules_are_feasible_and_idle() -> None:
    rng = np.random.default_rng(0)
    late = 0
    for instance in drawn(100):
        schedule = tiny.random_schedule(rng, instance)
        assert tiny.feasible(instance, schedule)
        late += tiny.measure(instance, schedule.start).delay > 0
    assert late > 50


def test_instances_are_shown_and_given() -> None:
    for instance in itertools.chain(drawn(50), tiny.instances(2, 2, 1, 2, 2)):
        back = read_instance(show_instance(instance))
        assert plain(back) == plain(instance)
    assert len(tiny.clusters(2, 2)) == 9 and tiny.clusters(1, 3) == [((3, 3),)]


# instances, by the oracle ------------------------------------------------------------------------------


def test_literal_queues_strand(results) -> None:
    found = instance_of(results, "literal-queue")
    for scheme in ("ff", "bf", "wf", "rf"):
        _, _, outcome = simulated(found, scheme, choose_random=lambda fitting: fitting[-1])
        assert outcome.stranded == found["never_run"] == [3]
        _, _, outcome = simulated(found, f"{scheme}-all", choose_random=lambda fitting: fitting[0])
        assert not outcome.stranded
    # three tasks never are
    for cluster in tiny.clusters(2, 2):
        kinds = [p for p in tiny.pairs(2) if any(p[0] <= x and p[1] <= y for x, y in cluster)]
        for demands in itertools.product(kinds, repeat=3):
            instance = tiny.Instance(tuple(tiny.Task(0, 1, c, m) for c, m in demands), cluster, 2)
            assert not oracle.simulate(*plain(instance), "ff").stranded
    figures = results[f"{PAPER}/literal-queue"].finding.figures
    assert figures["repaired_stranded"] == 0 and min(figures["random_stranded"].values()) > 10


def test_anomalies(results) -> None:
    """More servers, larger and smaller demands."""
    found = instance_of(results, "more-servers-always")
    assert total(found) == found["with_it"] > found["without_the_last"]
    assert total(found | {"servers": found["servers"][:-1]}) == found["without_the_last"]
    for name, pick in (("identical-largest", max), ("identical-least", min)):
        found = instance_of(results, name)
        same = {key: [pick(found[key], key=F)] * len(found[key]) for key in ("cpu", "memory")}
        own, other = total(found), total(found | same)
        assert (own, other) == (found["delay"], found["delay_if_identical"])
        assert own > other if pick is max else own < other


def test_fewer_servers(results) -> None:
    found = instance_of(results, "fewer-servers")
    instance = read_instance(found)
    assert tiny.feasible(instance, tiny.Schedule(tuple(found["start"]), tuple(found["server"])))
    assert found["start"] == found["arrival"] and found["more"] == 0
    # on server 0 the two leave nothing free; on server 1 they do not fit, nor does the third task
    assert found["servers"] == [["1", "1"], ["1", "1/2"]] and found["memory"] == ["1/2", "1/2", "1"]


def test_shortest_first(results) -> None:
    for name in ("greedy-optimal", "bf-exec-same-size"):
        found = instance_of(results, name)
        schedule = tiny.Schedule(tuple(found["start"]), tuple(found["server"]))
        assert tiny.feasible(read_instance(found), schedule)
        assert total(found) == found["delay"] > found["better"] == sum(found["start"]) - sum(found["arrival"])


def test_best_fit_before(results) -> None:
    found = instance_of(results, "best-fit-before")
    _, servers, outcome = simulated(found, "bf-exec")
    assert outcome.server == [found["after"]]
    norms = [x * x + y * y for x, y in servers]
    assert norms.index(min(norms)) == found["before"] != found["after"]
    # the specification's vector V1
    task, remaining = tiny.Task(0, 1, 6, 2), [(7, 12), (14, 2)]
    chosen = {rule: tiny.select(rule, task, remaining) for rule in ("best", "best-before", "worst", "dot")}
    assert chosen == {"best": 1, "best-before": 0, "worst": 0, "dot": 1}


def test_figure_1b(results) -> None:
    found = instance_of(results, "figure-1b")
    _, _, outcome = simulated(found, "bf-exec")
    assert outcome.start == found["start"]
    assert [i for i, start in enumerate(outcome.start) if start == 1] == [4]


@pytest.mark.parametrize("reading", ["service", "response"])
def test_printed_theorems(results, reading) -> None:
    """Every counterexample to a form of a theorem violates the printed one too, with one reading of mu."""
    for side, names in (("upper", ("", "-beta")), ("lower", ("", "-one-server"))):
        for name in names:
            found = instance_of(results, f"theorem-5.{1 if side == 'upper' else 2}{name}")
            tasks, servers, outcome = simulated(found, "bf-exec")
            theorem = oracle.theorem_bounds(tasks, servers, outcome, printed_mu=reading)
            delay = oracle.metrics(tasks, servers, outcome)["mean_delay"]
            assert delay == float(F(found["W"]))
            if side == "upper":
                assert theorem["printed_upper"] < delay <= theorem["corrected_upper"] + 1e-9
            else:
                assert theorem["printed_lower"] > delay >= theorem["corrected_lower"] - 1e-9


@pytest.mark.parametrize("name", ["max", "one-server", "execution"])
def test_ingredients(results, name) -> None:
    """The corrected theorem holds where one with a printed ingredient does not."""
    found = instance_of(results, f"theorem-5.1-{name}")
    tasks, servers, outcome = simulated(found, "bf-exec")
    measured = oracle.metrics(tasks, servers, outcome)
    theorem = oracle.theorem_bounds(tasks, servers, outcome)
    delay, per_task = measured["mean_delay"], measured["makespan"] / len(tasks)
    assert float(F(found["bound"])) + 1e-9 < delay <= theorem["corrected_upper"] + 1e-9
    largest = [max(task[r] for task in tasks) for r in (2, 3)]
    k, mu = oracle.k_low(tasks, servers), delay + sum(task[1] for task in tasks) / len(tasks)
    if name == "max":
        k = sum(
            math.floor(max(c / u for c, u in zip(server, largest, strict=True)) + 1e-9) for server in servers
        )
    elif name == "one-server":
        k = math.floor(min(1 / u for u in largest) + 1e-9)
    else:
        mu -= delay
    assert float(F(found["bound"])) == pytest.approx(mu - measured["beta"] * k * per_task)


def test_any_scheduler(results) -> None:
    found = instance_of(results, "theorem-5.1-any-scheduler")
    assert (found["arrival"], found["start"], found["W"]) == ([0], [1], "1")
    tasks, servers = plain(read_instance(found))
    outcome = oracle.Outcome([1.0], [0], [], 2.0)
    assert oracle.theorem_bounds(tasks, servers, outcome)["corrected_upper"] == float(F(found["bound"])) < 1


def test_littles_law(results) -> None:
    for name, key in (("littles-law", "N"), ("littles-law-queue", "N_q")):
        found = instance_of(results, name)
        tasks, servers, outcome = simulated(found, "bf-exec")
        measured = oracle.metrics(tasks, servers, outcome)
        rate = float(F(found["lambda"]))
        actual = measured["mean_queued"] + (measured["mean_running"] if key == "N" else 0)
        assert actual == pytest.approx(float(F(found[key])))
        service = sum(task[1] for task in tasks) / len(tasks)
        printed = rate * service if key == "N" else measured["mean_delay"] / rate
        meant = rate * (measured["mean_delay"] + (service if key == "N" else 0))
        assert printed == pytest.approx(float(F(found["printed"]))) and actual == pytest.approx(meant)


def test_the_bounds_do_not_know_the_delay(results) -> None:
    found = instance_of(results, "bounds-on-the-delay")
    tasks, servers = plain(read_instance(found))
    slack, delays = [], []
    for start in (found["bf_exec_start"], found["start"]):
        outcome = oracle.Outcome([float(s) for s in start], [0] * len(start), [], 0.0)
        delay = oracle.metrics(tasks, servers, outcome)["mean_delay"]
        theorem = oracle.theorem_bounds(tasks, servers, outcome)
        slack.append((theorem["corrected_upper"] - delay, delay - theorem["corrected_lower"]))
        delays.append(delay)
    assert slack[0] == pytest.approx(slack[1]) and delays == pytest.approx([float(F(w)) for w in found["W"]])
    assert delays[0] != pytest.approx(delays[1])


def test_utilisation_is_not_delay(results) -> None:
    found = instance_of(results, "utilisation-is-not-delay")
    shares = []
    for name, delay in zip(("bf-exec", found["rival"]), found["delay"], strict=True):
        scheme, _, blocking = name.partition("-blocking")
        tasks, servers, outcome = simulated(found, scheme, blocking=scheme != name)
        assert sum(oracle.delays(tasks, outcome)) == delay
        shares.append(oracle.metrics(tasks, servers, outcome)["utilization_cpu_backlog"])
    assert shares == pytest.approx([float(F(share)) for share in found["utilisation"]])


# the experiments ---------------------------------------------------------------------------------------


def figures_of(results, name):
    """What a claim measured, by reading."""
    found = results[f"{PAPER}/{name}"].findings
    return {reading: finding.figures for reading, finding in found.items()}


def test_figures(results) -> None:
    """Ten episodes a point; the bands are those of 60 episodes, and wide."""
    dp = figures_of(results, "figure-3-ffd-dp")[PASSING]
    assert dp["bf_exec"][0] == pytest.approx(1558, rel=0.2)
    assert dp["relative"][0] == pytest.approx(1.0, abs=0.25)
    assert abs(dp["relative"][-1]) < 0.2 < min(dp["relative"][:4])
    assert min(figures_of(results, "figure-3-fcfs")[""]["low"]) > 1
    window = figures_of(results, "figure-2-order")[f"{PASSING}, to the last arrival"]
    assert window["more"]["ffd-dp"] == 0 and window["less"]["ffd-dp"] > window["settings"] / 2
    levels = figures_of(results, "figure-2-levels")
    assert max(levels["to the last completion"]["levels"]["cpu"]) < 0.4
    assert 0.8 < min(levels["while tasks wait"]["levels"]["memory"]) < 0.92


@in_minutes
def test_figures_of_many_runs(results) -> None:
    nb = figures_of(results, "figure-3-ffd-nb")[PASSING]
    assert nb["relative"][0] == pytest.approx(1.2, abs=0.3)
    shares = figures_of(results, "dot-product")["a shorter average delay"]["shares"]
    assert min(share for share, _, _ in shares.values()) > 0.9


def test_statements_on_ffd_under_both_readings(results) -> None:
    """With a front that blocks BF-EXEC is ahead in all settings, up to the last arrival."""
    window = figures_of(results, "figure-2-order")[f"{BLOCKING}, {WINDOW.default}"]
    assert set(window["more"]) == {"ffd-nb-blocking", "ffd-dp-blocking", "fcfs"}
    assert set(window["more"].values()) == {window["settings"]} == {16}
    ahead = figures_of(results, "outperforms")[f"{BLOCKING}, {WINDOW.default}"]
    assert ahead["clear"] == ahead["settings"] == 3 * 3 * 8  # metrics, rivals, numbers of servers
    passing = results[f"{PAPER}/figure-3-ffd-dp"].findings[PASSING]
    assert sum(low > 0 for low in passing.figures["low"]) == 7 and passing.verdict == "in part"  # of 8
    used = figures_of(results, "utilisation-is-not-delay")
    assert used[PASSING]["flawed"] != used[BLOCKING]["flawed"] > 0 == used[BLOCKING]["both"]


# confirmations can fail --------------------------------------------------------------------------------

STATED = {
    "normalised-demands": ("cpu", "1/2"),
    "normalisation": ("server", [0, 0]),
    "fewer-servers": ("fewer", 2),
    "more-servers-always": ("execution", [1, 1, 1, 1]),
    "literal-queue": ("memory", ["1/2", "1/2", "1/2", "1/2"]),
    "greedy-optimal": ("better", 1),
    "bf-exec-same-size": ("start", [0, 0]),
    "best-fit-before": ("cpu", ["1"]),
    "figure-1b": ("start", [0, 0, 10, 12, 1, 5, 14]),
    "theorem-5.1": ("bound", "-2"),
    "theorem-5.2": ("bound", "1/3"),
    "theorem-5.1-max": ("memory", ["1/2", "1/2"]),
    "theorem-5.1-one-server": ("W", "0"),
    "theorem-5.1-beta": ("cpu", ["1"]),
    "theorem-5.1-execution": ("execution", [1, 1]),
    "theorem-5.2-one-server": ("servers", [["1", "1"]]),
    "theorem-5.1-any-scheduler": ("start", [0]),
    "running-at-least": ("printed", 1),
    "running-at-most": ("N_r", 1),
    "littles-law": ("printed", "3/2"),
    "littles-law-queue": ("execution", [1, 1]),
    "identical-largest": ("delay", 3),
    "identical-least": ("execution", [1, 1, 1, 1]),
    "bounds-on-the-delay": ("start", [0, 1, 1]),
    "utilisation-is-not-delay": ("delay", [3, 3]),
}


@pytest.mark.parametrize("name", WITH_INSTANCE)
def test_changed_instances_are_not_confirmed(results, name) -> None:
    (entry,) = list_claims(name)
    finding = results[name].finding
    found = copy.deepcopy(dict(finding.counterexample or finding.witness))
    assert entry.confirm(found)
    key, value = STATED[entry.name.partition("/")[2]]
    assert found[key] != value
    assert not entry.confirm(found | {key: value})


def test_what_does_not_violate_is_not_confirmed() -> None:
    """Right numbers that show nothing: the bound holds."""
    (entry,) = list_claims(f"{PAPER}/theorem-5.1")
    task = {"arrival": [0], "execution": [1], "cpu": ["1"], "memory": ["1"], "servers": [["1", "1"]]}
    assert not entry.confirm(task | {"W": "0", "bound": "0"})
    (entry,) = list_claims(f"{PAPER}/literal-queue")
    assert not entry.confirm(task | {"never_run": []})


def test_seeds_decide_the_runs() -> None:
    """Claims of one check share their runs; another seed has others."""
    name = f"{PAPER}/figure-3-fcfs"
    first, again, other = (check_claims(name, scale="tiny", seed=s)[0].finding.figures for s in (0, 0, 1))
    assert first == again != other
    shared = check_claims(f"{PAPER}/figure-3-ffd-nb", scale="tiny")[0].finding.figures
    assert shared["bf_exec"] == first["bf_exec"] != other["bf_exec"]
