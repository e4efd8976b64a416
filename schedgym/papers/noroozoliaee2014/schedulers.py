"""Sections II to IV: the model, existing schedulers, the shortest task first, and BF-EXEC."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from schedgym.evaluation.statistics import estimate
from schedgym.papers import CORRECTED, HOLDS, REFUTED, Finding, Run, Shown, judge
from schedgym.papers.noroozoliaee2014 import model
from schedgym.papers.noroozoliaee2014.instances import (
    OPEN,
    claim,
    clusters,
    draw,
    find_flaw,
    instances,
    pairs,
    read_instance,
    read_schedule,
    show_instance,
    show_schedule,
    show_share,
    tiny_instances,
    total_delay,
)
from schedgym.papers.noroozoliaee2014.model import Instance, Schedule, Server, Task
from schedgym.papers.noroozoliaee2014.runs import Play, in_environment, play_instance, sweep_policies
from schedgym.papers.searches import Details, Sentences, count

# section II: the model -------------------------------------------------------------------------------


def _confirm_unserved(instance: Shown) -> bool:
    c, m = Fraction(instance["cpu"]), Fraction(instance["memory"])
    servers = [(Fraction(x), Fraction(y)) for x, y in instance["servers"]]
    normalised = all(max(server[r] for server in servers) == 1 for r in (0, 1))
    return normalised and max(c, m) <= 1 and not any(c <= x and m <= y for x, y in servers)


@claim("normalised-demands", confirm=_confirm_unserved)
def _check_unserved(run: Run, say: Sentences) -> Finding:
    cases = [
        (number, unit, c + m, servers, c, m)
        for number, unit in ((1, 2), (1, 4), (2, 2), (2, 4))
        for servers in clusters(number, unit)
        for c, m in pairs(unit, 0)
    ]
    unserved = [case for case in cases if not any(case[4] <= x and case[5] <= y for x, y in case[3])]
    beside_largest = sum((unit, unit) in servers for _, unit, _, servers, _, _ in unserved)
    figures = {"checked": len(cases), "unserved": len(unserved), "beside_largest": beside_largest}
    if not unserved:
        return say(HOLDS, figures)
    _, unit, _, servers, c, m = min(unserved)
    example = {
        "cpu": show_share(c, unit),
        "memory": show_share(m, unit),
        "servers": [[show_share(x, unit), show_share(y, unit)] for x, y in servers],
    }
    return say(CORRECTED if not beside_largest else REFUTED, figures, counterexample=example)


def _nearest(task: Server, servers: Sequence[Server], scale: Server) -> list[int]:
    """Return the servers with the least L2 norm of remaining resources, each divided by its ``scale``."""
    norms = {
        j: Fraction(x - task[0], scale[0]) ** 2 + Fraction(y - task[1], scale[1]) ** 2
        for j, (x, y) in enumerate(servers)
        if task[0] <= x and task[1] <= y
    }
    return [j for j, norm in norms.items() if norm == min(norms.values())]


def _confirm_normalisation(shown: Shown) -> bool:
    """Confirm by the registered policy, with shares of the largest of two and of three servers."""
    (c, m), servers = shown["task"], shown["servers"]
    chosen: list[int] = []
    for number in (2, 3):
        x, y = map(max, zip(*servers[:number], strict=True))
        shares = [(cpu / x, memory / y) for cpu, memory in servers[:number]]
        placed, _ = play_instance(Instance((Task(0, 1, c / x, m / y),), shares), "bf-exec")
        chosen += placed.server
    fits = c <= servers[2][0] and m <= servers[2][1]
    return not fits and chosen == shown["server"] and chosen[0] != chosen[1]


@claim("normalisation", confirm=_confirm_normalisation)
def _check_normalisation(run: Run, say: Sentences) -> Finding:
    kinds = pairs(4 if run.small else 5)
    checked = 0
    differ = []
    for servers in itertools.product(kinds, repeat=3):
        for task in kinds:
            if [task[0] <= x and task[1] <= y for x, y in servers] != [True, True, False]:
                continue
            checked += 1
            one, two = (
                _nearest(task, servers[:2], (max(x for x, _ in group), max(y for _, y in group)))
                for group in (servers[:2], servers)
            )
            if len(one) == len(two) == 1 and one != two:
                differ.append((sum(map(sum, servers)) + sum(task), servers, task, [one[0], two[0]]))
    figures = {"checked": checked, "differ": len(differ)}
    if not differ:
        return say(HOLDS, figures)
    _, servers, task, server = min(differ)
    example = {"task": list(task), "servers": list(map(list, servers)), "server": server}
    return say(REFUTED, figures, counterexample=example)


# section III-A: existing schedulers ------------------------------------------------------------------


def _by_servers(instance: Instance) -> dict[int, tuple[int, Schedule]]:
    """Return the least delays if all tasks that arrive at 0 start then, by the number of servers they use."""
    first = tuple(task for task in instance.tasks if task.arrival == 0)
    found: dict[int, tuple[int, Schedule]] = {}
    for hosts in itertools.product(range(len(instance.servers)), repeat=len(first)):
        if not model.feasible(instance._replace(tasks=first), Schedule((0,) * len(first), hosts)):
            continue
        best = model.optimum(instance, [(i, 0, j) for i, j in enumerate(hosts)])
        used = len(set(hosts))
        if used not in found or best[0] < found[used][0]:
            found[used] = best
    return found


def _confirm_fewer(shown: Shown) -> bool:
    """Try all starts of the later tasks on all servers: none has less delay, with one server used first."""
    instance = read_instance(shown)
    tasks = instance.tasks
    first = sum(task.arrival == 0 for task in tasks)
    better = read_schedule(shown)
    if (
        not model.feasible(instance, better)
        or len(set(better.server[:first])) < 2
        or any(better.start[:first])
    ):
        return False
    least = math.inf
    ranges = [range(task.arrival, task.arrival + shown["fewer"] + 1) for task in tasks[first:]]
    for j in range(len(instance.servers)):
        for later in itertools.product(*ranges):
            for hosts in itertools.product(range(len(instance.servers)), repeat=len(later)):
                one = Schedule((0,) * first + later, (j,) * first + hosts)
                if model.feasible(instance, one):
                    least = min(least, total_delay(instance, one.start))
    return least == shown["fewer"] > shown["more"] == total_delay(instance, better.start)


@claim("fewer-servers", confirm=_confirm_fewer)
def _check_fewer(run: Run, say: Sentences) -> Finding:
    counts = dict.fromkeys(("shorter", "equal_shorter", "equal_longer"), 0)

    def flaw(instance: Instance) -> Details:
        if sum(task.arrival == 0 for task in instance.tasks) != 2:
            return None
        found = _by_servers(instance)
        if 1 not in found or 2 not in found:
            return None
        shorter, longer = found[1][0] < found[2][0], found[1][0] > found[2][0]
        equal = len(set(instance.servers)) == 1
        counts["shorter"] += shorter
        counts["equal_shorter"] += equal and shorter
        counts["equal_longer"] += equal and longer
        if not longer:
            return None
        return {"fewer": found[1][0], "more": found[2][0]} | show_schedule(found[2][1])

    sizes = [(3, 2, 1, 2, 2)] if run.small else [(3, 2, 2, 2, 2), (3, 1, 1, 2, 3)]
    searched = find_flaw((one for size in sizes for one in instances(*size)), flaw)
    right = counts["equal_shorter"] > counts["equal_longer"]
    return say.against(CORRECTED if right else REFUTED, searched, counts)


def _later_with_another(instance: Instance, play: Play = model.simulate) -> Details:
    """Return the sums of delays without the last server and with it, if it adds to them."""
    fewer = instance._replace(servers=instance.servers[:-1])
    before = total_delay(fewer, play(fewer, "bf-exec").start)
    after = total_delay(instance, play(instance, "bf-exec").start) if before else 0
    return {"without_the_last": before, "with_it": after} if after > before else None


@claim("more-servers-always", confirm=in_environment(_later_with_another))
def _check_more_servers_always(run: Run, say: Sentences) -> Finding:
    def cases() -> Iterator[Instance]:
        for tasks in (2, 3, 4):
            longest, latest = (2, 0) if tasks == 4 and run.small else (2, 1)
            for instance in instances(tasks, longest, latest, 1, 2):
                for server in pairs(2):
                    yield instance._replace(servers=(*instance.servers, server))

    return say.against(REFUTED, find_flaw(cases(), _later_with_another))


LITERAL = ("ff", "bf", "wf")


def _stranded(instance: Instance, play: Play = model.simulate) -> Details:
    """Return the tasks that never run, if they are the same under all of these schemes."""
    never = [[i for i, start in enumerate(play(instance, name).start) if start is None] for name in LITERAL]
    return {"never_run": never[0]} if never[0] and never.count(never[0]) == len(LITERAL) else None


def _confirm_stranded(shown: Shown) -> bool:
    """Confirm in the environment that RF strands the same tasks, too, and the repaired versions none."""
    instance = read_instance(shown)
    random = play_instance(instance, "rf")[0].start
    repaired = [play_instance(instance, f"{name}-all")[0].start for name in (*LITERAL, "rf")]
    return (
        in_environment(_stranded)(shown)
        and [i for i, start in enumerate(random) if start is None] == shown["never_run"]
        and not any(None in starts for starts in repaired)
    )


@claim("literal-queue", confirm=_confirm_stranded)
def _check_literal_queue(run: Run, say: Sentences) -> Finding:
    sizes = [(2, 2, 1, 2, 2), (3, 2, 1, 2, 2), (4, 1 if run.small else 2, 0, 2, 2)]
    searched = find_flaw((one for size in sizes for one in instances(*size)), _stranded)
    count = 400 if run.small else 10_000
    stranded = dict.fromkeys(LITERAL, 0)
    any_of_them = repaired = 0
    for _ in range(count):
        instance = draw(run.rng)
        found = {name: None in model.simulate(instance, name).start for name in LITERAL}
        for name in LITERAL:
            stranded[name] += found[name]
            repaired += None in model.simulate(instance, f"{name}-all").start
        any_of_them += any(found.values())
    figures = {"random": count, "random_stranded": stranded, "repaired_stranded": repaired}
    each = ", ".join(f"{name.upper()} {number}" for name, number in stranded.items())
    verdict = CORRECTED if not repaired else REFUTED
    return say.against(verdict, searched, figures, any_of_them=any_of_them, each=each)


def _passed_over(instance: Instance, schedule: Schedule) -> bool:
    """Return True if at some time a task waits although it fits a server."""
    tasks = instance.tasks
    spans = [
        (start, start + task.execution, j)
        for task, start, j in zip(tasks, schedule.start, schedule.server, strict=True)
        if start is not None
    ]
    for t in {moment for span in spans for moment in span[:2]}:
        free = list(instance.servers)
        for (begin, end, j), task in zip(spans, tasks, strict=True):
            if begin <= t < end:
                free[j] = free[j][0] - task.cpu, free[j][1] - task.memory
        for (begin, _, _), task in zip(spans, tasks, strict=True):
            if task.arrival <= t < begin and any(task.cpu <= x and task.memory <= y for x, y in free):
                return True
    return False


@claim("every-task-runs")
def _check_every_task(run: Run, say: Sentences) -> Finding:
    def runs(instance: Instance) -> bool:
        schedule = model.simulate(instance, "bf-exec")
        return None not in schedule.start and not _passed_over(instance, schedule)

    drawn = (draw(run.rng) for _ in range(1_000 if run.small else 10_000))
    return say.counted(count(itertools.chain(tiny_instances(run), drawn), runs), "failed")


def _shorter(
    run: Run, policies: Sequence[str], reference: str, rivals: Sequence[str]
) -> dict[str, list[float]]:
    """Return the share of runs in which the reference has the shorter mean delay, with its interval.

    The runs of an episode on several numbers of servers have the same tasks, so episodes are resampled.
    """
    frame = sweep_policies(run, policies).frame
    delays = frame[frame["metric"] == "mean_delay"]
    table = delays.pivot(index=["episode", "servers"], columns="policy", values="value")
    found = {}
    for rival in rivals:
        shares = (table[reference] < table[rival]).astype(float).groupby("episode").mean().tolist()
        found[rival] = [*estimate(shares)]
    return found


def _shown_shares(shares: dict[str, list[float]]) -> str:
    return ", ".join(
        f"{rival} {share:.0%} [{low:.0%}, {high:.0%}]" for rival, (share, low, high) in shares.items()
    )


@claim("best-fit")
def _check_best_fit(run: Run, say: Sentences) -> Finding:
    from schedgym.baselines.queue_delay.packing import pack

    lists, items = (40, 200) if run.small else (400, 500)
    rivals = ("ff", "wf", "rf")
    extra: dict[str, list[int]] = {rival: [] for rival in rivals}
    for _ in range(lists):
        demands = run.rng.uniform(0.0, 1.0, (items, 2))
        bins = {rule: pack(demands, rule=rule, rng=run.rng).bins for rule in ("bf", *rivals)}
        for rival in rivals:
            extra[rival].append(bins[rival] - bins["bf"])
    found = {rival: [*estimate(row)] for rival, row in extra.items()}
    fewer = {rival: float(np.mean(np.array(row) > 0)) for rival, row in extra.items()}
    delays = _shorter(run, ("bf-all", "ff-all", "wf-all"), "bf-all", ("ff-all", "wf-all"))
    shown = ", ".join(
        f"{rival.upper()} {mean:.1f} [{low:.1f}, {high:.1f}] (more in {fewer[rival]:.0%})"
        for rival, (mean, low, high) in found.items()
    )
    good = all(low > 0 for _, low, _ in found.values()) and min(fewer.values()) > 0.5
    figures = {"bins": found, "fewer": fewer, "delays": delays}
    shares = _shown_shares(delays)
    return say(judge(good), figures, lists=lists, items=items, shown=shown, shares=shares)


MEASURES = ("product", "sum", "avgsum")
#: least and greatest demands of items, as shares of a bin
RANGES = ((0.05, 0.2), (0.1, 0.4), (0.2, 0.8), (0.0, 1.0))


def _fewer_bins(run: Run, size: str) -> dict[str, tuple[int, int]]:
    """Count lists of items that filling bin after bin by a measure packs into fewer, and into more, bins.

    Returns:
        the counts against first fit decreasing by each of the other measures.
    """
    from schedgym.baselines.queue_delay.packing import pack

    lists, items = (12, 200) if run.small else (100, 500)
    found = dict.fromkeys(MEASURES, (0, 0))
    for least, most in RANGES:
        for _ in range(lists):
            demands = run.rng.uniform(least, most, (items, 2))
            own = pack(demands, rule="bin-centric", size=size).bins
            for other in MEASURES:
                bins = pack(demands, rule="ffd", size=other).bins
                fewer, more = found[other]
                found[other] = fewer + (own < bins), more + (own > bins)
    return found


def _most_cases(name: str, size: str, scheme: str) -> None:
    """Register the claim that one measure of size outperforms the other measures in most cases.

    Args:
        name: of the claim.
        size: the measure in packings of bins.
        scheme: the scheme that schedules by it.
    """

    @claim(name)
    def _check(run: Run, say: Sentences) -> Finding:
        if run.choice(OPEN["OUTPERFORMING"]):
            counts = _fewer_bins(run, size)
            told = ", ".join(f"{other} {fewer} ({more})" for other, (fewer, more) in counts.items())
            good = all(fewer > 2 * more for fewer, more in counts.values())
            drawn = len(RANGES) * (12 if run.small else 100)
            return say(judge(good), {"lists": counts}, told=told, drawn=drawn)
        others = tuple(f"ffd-{other}" for other in MEASURES)
        shares = _shorter(run, ("ffd-dp", "ffd-nb", *others), scheme, others)
        text = f"{scheme} has the shorter mean delay in these shares of runs: {_shown_shares(shares)}"
        good = all(low > 0.5 for _, low, _ in shares.values())
        return Finding(judge(good), text, figures={"shares": shares})


_most_cases("dot-product", "dot", "ffd-dp")
_most_cases("l2-norm", "norm", "ffd-nb")


# section III-B: the shortest task first --------------------------------------------------------------


def _shortest_first(instance: Instance) -> int:
    """Return the sum of delays if tasks that arrive together are offered by increasing execution time."""
    tasks = sorted(instance.tasks, key=lambda task: task.execution)
    ordered = instance._replace(tasks=tuple(tasks))
    return total_delay(ordered, model.simulate(ordered, "bf-exec").start)


@claim("same-size")
def _check_same_size(run: Run, say: Sentences) -> Finding:
    cases = (
        Instance(tuple(Task(0, e, 1, 1) for e in lengths), tuple((c, c) for c in capacities))
        for capacities in ((1,), (2,), (3,), (1, 2), (1, 1))
        for lengths in itertools.combinations_with_replacement(range(1, 5 if run.small else 6), 4)
    )
    counted = count(cases, lambda case: bool(_shortest_first(case) == model.optimum(case)[0]))
    return say.counted(counted, "worse")


def _worse_than_optimal(instance: Instance, play: Play = model.simulate) -> Details:
    """Return a schedule with less delay than BF-EXEC's, the greedy rule if tasks are sorted by execution."""
    own = total_delay(instance, play(instance, "bf-exec").start)
    if own == 0:
        return None
    best, schedule = model.optimum(instance)
    return None if own == best else {"delay": own, "better": best} | show_schedule(schedule)


def _confirm_greedy(shown: Shown) -> bool:
    in_order = shown["execution"] == sorted(shown["execution"])
    one_dimension = shown["cpu"] == shown["memory"] and len(shown["servers"]) == 1
    return (
        in_order
        and one_dimension
        and not any(shown["arrival"])
        and in_environment(_worse_than_optimal)(shown)
    )


@claim("greedy-optimal", confirm=_confirm_greedy)
def _check_greedy(run: Run, say: Sentences) -> Finding:
    def cases() -> Iterator[Instance]:
        for number, longest, unit in ((1, 3, 2), (2, 4, 3), (3, 4, 2)) + (() if run.small else ((4, 4, 2),)):
            kinds = list(itertools.product(range(1, longest + 1), range(1, unit + 1)))
            for tasks in itertools.combinations_with_replacement(kinds, number):
                yield Instance(tuple(Task(0, e, d, d) for e, d in tasks), ((unit, unit),))

    return say.against(CORRECTED, find_flaw(cases(), _worse_than_optimal))


def _confirm_same_size(shown: Shown) -> bool:
    same = len(set(zip(shown["cpu"], shown["memory"], strict=True))) == 1
    return same and not any(shown["arrival"]) and in_environment(_worse_than_optimal)(shown)


@claim("bf-exec-same-size", confirm=_confirm_same_size)
def _check_bf_exec_same_size(run: Run, say: Sentences) -> Finding:
    cases = (
        Instance(tuple(Task(0, e, 1, 1) for e in lengths), ((1, 1),))
        for count in (1, 2, 3)
        for lengths in itertools.product((1, 2, 3), repeat=count)
    )
    return say.against(REFUTED, find_flaw(cases, _worse_than_optimal))


# section IV: the scheme ------------------------------------------------------------------------------


def _moved(instance: Instance, play: Play = model.simulate) -> Details:
    """Return the servers that have least left before, and after, the placement of the only task."""
    (task,) = instance.tasks
    norms = [x * x + y * y for x, y in instance.servers]
    fitting = [j for j, (x, y) in enumerate(instance.servers) if task.cpu <= x and task.memory <= y]
    before, after = min(fitting, key=lambda j: norms[j]), play(instance, "bf-exec").server[0]
    # a tie, as it is if both are the same
    return None if norms[before] == norms[after] else {"before": before, "after": after}


@claim("best-fit-before", confirm=in_environment(_moved))
def _check_before(run: Run, say: Sentences) -> Finding:
    cases = [
        Instance((Task(0, 1, c, m),), servers)
        for unit in (1, 2, 4)
        for servers in clusters(2, unit)
        for c, m in pairs(unit)
        if any(c <= x and m <= y for x, y in servers)
    ]
    one_resource = 0
    for (task,), servers in cases:
        own, line = Task(*task[:3], 0), [(x, 0) for x, _ in servers]  # the same without memory
        one_resource += model.select("best-before", own, line) != model.select("best", own, line)
    count = 2_000 if run.small else 10_000
    totals = {"bf-exec": 0, "bf-exec-before": 0}
    differ = 0
    for _ in range(count):
        instance = draw(run.rng)
        found = {name: total_delay(instance, model.simulate(instance, name).start) for name in totals}
        differ += found["bf-exec"] != found["bf-exec-before"]
        for name, delay in found.items():
            totals[name] += delay
    ratio = totals["bf-exec-before"] / totals["bf-exec"]
    figures = {"one_resource": one_resource, "random": count, "random_differ": differ, "delay_ratio": ratio}
    return say.against(CORRECTED, find_flaw(cases, _moved), figures)


def _started(instance: Instance, play: Play = model.simulate) -> dict[str, Any]:
    return {"start": list(play(instance, "bf-exec").start)}


@claim("figure-1b", confirm=in_environment(_started))
def _check_figure_1b(run: Run, say: Sentences) -> Finding:
    # one task stays on the server, one leaves 3/4 of it at time 1; then five, by execution time
    demands = ((4, 4), (4, 3), (2, 2), (3, 3), (2, 2))
    waiting = [Task(0, 2 + k, c, m) for k, (c, m) in enumerate(demands)]
    instance = Instance((Task(0, 9, 1, 1), Task(0, 1, 3, 3), *waiting), ((4, 4),))
    found = _started(instance)
    started = [i for i, start in enumerate(found["start"]) if start == 1]
    good = started == [4] and waiting[4].cpu <= 3 and waiting[4].cpu > 4 - 1 - waiting[2].cpu
    return say(judge(good), {}, witness=show_instance(instance) | found)
