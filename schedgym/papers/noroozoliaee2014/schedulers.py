"""Sections II to IV: the model, existing schedulers, the shortest task first, and BF-EXEC."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from schedgym.papers import CORRECTED, HOLDS, REFUTED, Finding, Run, Shown, judge
from schedgym.papers.noroozoliaee2014.instances import (
    claim,
    clusters,
    draw,
    find_flaw,
    instances,
    pairs,
    read_instance,
    show_instance,
    show_share,
    tiny_instances,
    total_delay,
)
from schedgym.papers.noroozoliaee2014.model import (
    Instance,
    Schedule,
    Server,
    Task,
    feasible,
    optimum,
    select,
    simulate,
)
from schedgym.papers.noroozoliaee2014.readings import OUTPERFORMING
from schedgym.papers.noroozoliaee2014.runs import play_instance, play_rows, sweep_policies
from schedgym.papers.searches import count, found_against

# instances -------------------------------------------------------------------------------------------


def _counted(wins: int, of: int) -> str:
    return f"{wins:,} of {of:,}"


# section II: the model -------------------------------------------------------------------------------


def _confirm_unserved(instance: Shown) -> bool:
    c, m = Fraction(instance["cpu"]), Fraction(instance["memory"])
    servers = [(Fraction(x), Fraction(y)) for x, y in instance["servers"]]
    normalised = all(max(server[r] for server in servers) == 1 for r in (0, 1))
    return normalised and max(c, m) <= 1 and not any(c <= x and m <= y for x, y in servers)


@claim("normalised-demands", confirm=_confirm_unserved)
def _check_unserved(run: Run) -> Finding:
    checked = unserved = beside_largest = 0
    best: tuple[Any, ...] | None = None
    for number, unit in ((1, 2), (1, 4), (2, 2), (2, 4)):
        for servers in clusters(number, unit):
            for c, m in pairs(unit, 0):
                checked += 1
                if any(c <= x and m <= y for x, y in servers):
                    continue
                unserved += 1
                beside_largest += (unit, unit) in servers
                own = (number, unit, c + m, servers, c, m)
                best = own if best is None else min(best, own)
    figures = {"checked": checked, "unserved": unserved, "beside_largest": beside_largest}
    if best is None:
        return Finding(HOLDS, f"in all {checked:,} cases", figures=figures)
    _, unit, _, servers, c, m = best
    example = {
        "cpu": show_share(c, unit),
        "memory": show_share(m, unit),
        "servers": [[show_share(x, unit), show_share(y, unit)] for x, y in servers],
    }
    text = (
        f"{_counted(unserved, checked)} tasks fit no server, {beside_largest} of them where one server is the"
    )
    text += " largest in both resources; if none is, each task of a workload must be checked"
    return Finding(
        CORRECTED if not beside_largest else REFUTED, text, counterexample=example, figures=figures
    )


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
    task, servers = shown["task"], shown["servers"]
    if task[0] <= servers[2][0] and task[1] <= servers[2][1]:
        return False
    chosen = []
    for number in (2, 3):
        scale = [max(server[r] for server in servers[:number]) for r in (0, 1)]
        shares = [(x / scale[0], y / scale[1]) for x, y in servers[:number]]
        chosen += play_rows([(0, 1, task[0] / scale[0], task[1] / scale[1])], shares, "bf-exec").server
    return chosen == shown["server"] and chosen[0] != chosen[1]


@claim("normalisation", confirm=_confirm_normalisation)
def _check_normalisation(run: Run) -> Finding:
    most = 4 if run.small else 5
    kinds = pairs(most)
    checked = differ = 0
    best: tuple[Any, ...] | None = None
    for servers in itertools.product(kinds, repeat=3):
        a, b, other = servers
        for task in kinds:
            fits = [task[0] <= x and task[1] <= y for x, y in servers]
            if fits != [True, True, False]:
                continue
            checked += 1
            one, two = (
                _nearest(task, (a, b), (max(x for x, _ in group), max(y for _, y in group)))
                for group in ((a, b), servers)
            )
            if len(one) == len(two) == 1 and one != two:
                differ += 1
                own = (sum(map(sum, servers)) + sum(task), servers, task, [one[0], two[0]])
                best = own if best is None else min(best, own)
    figures = {"checked": checked, "differ": differ}
    if best is None:
        return Finding(HOLDS, f"in all {checked:,} cases", figures=figures)
    example = {"task": list(best[2]), "servers": [list(s) for s in best[1]], "server": best[3]}
    text = (
        f"{_counted(differ, checked)} tasks are placed on another server if there is a third one, which "
        "cannot hold them"
    )
    return Finding(REFUTED, text, counterexample=example, figures=figures)


# section III-A: existing schedulers ------------------------------------------------------------------


def _by_servers(instance: Instance) -> dict[int, tuple[int, Schedule]]:
    """Return the least delays if all tasks that arrive at 0 start then, by the number of servers they use."""
    first = tuple(task for task in instance.tasks if task.arrival == 0)
    found: dict[int, tuple[int, Schedule]] = {}
    for hosts in itertools.product(range(len(instance.servers)), repeat=len(first)):
        if not feasible(instance._replace(tasks=first), Schedule((0,) * len(first), hosts)):
            continue
        best = optimum(instance, [(i, 0, j) for i, j in enumerate(hosts)])
        used = len(set(hosts))
        if used not in found or best[0] < found[used][0]:
            found[used] = best
    return found


def _confirm_fewer(shown: Shown) -> bool:
    """Try all starts of the later tasks on all servers: none has less delay, with one server used first."""
    instance = read_instance(shown)
    tasks = instance.tasks
    first = sum(task.arrival == 0 for task in tasks)
    better = Schedule(tuple(shown["start"]), tuple(shown["server"]))
    if not feasible(instance, better) or len(set(better.server[:first])) < 2 or any(better.start[:first]):
        return False
    least = math.inf
    ranges = [range(task.arrival, task.arrival + shown["fewer"] + 1) for task in tasks[first:]]
    for j in range(len(instance.servers)):
        for later in itertools.product(*ranges):
            for hosts in itertools.product(range(len(instance.servers)), repeat=len(later)):
                one = Schedule((0,) * first + later, (j,) * first + hosts)
                if feasible(instance, one):
                    least = min(least, total_delay(instance, one.start))
    return least == shown["fewer"] > shown["more"] == total_delay(instance, better.start)


@claim("fewer-servers", confirm=_confirm_fewer)
def _check_fewer(run: Run) -> Finding:
    def flaw(instance: Instance) -> dict[str, Any] | None:
        if sum(task.arrival == 0 for task in instance.tasks) != 2:
            return None
        found = _by_servers(instance)
        if 1 not in found or 2 not in found or found[1][0] <= found[2][0]:
            return None
        return {
            "fewer": found[1][0],
            "more": found[2][0],
            "start": list(found[2][1].start),
            "server": list(found[2][1].server),
        }

    sizes = [(3, 2, 1, 2, 2)] if run.small else [(3, 2, 2, 2, 2), (3, 1, 1, 2, 3)]
    searched = find_flaw((one for sizes_ in sizes for one in instances(*sizes_)), flaw)
    text = (
        "with two tasks at first and one later, and the best placements on fewer and on more servers (given "
        "are the sums of delays): what counts is which server is left free, and for how long"
    )
    return found_against(REFUTED, searched, text)


def _confirm_more_servers(shown: Shown) -> bool:
    instance = read_instance(shown)
    fewer = instance._replace(servers=instance.servers[:-1])
    delays = [
        round(len(instance.tasks) * play_instance(one, "bf-exec").metrics["mean_delay"])
        for one in (fewer, instance)
    ]
    return delays == [shown["without_the_last"], shown["with_it"]] and delays[0] < delays[1]


@claim("more-servers-always", confirm=_confirm_more_servers)
def _check_more_servers_always(run: Run) -> Finding:
    def cases() -> Iterator[Instance]:
        for tasks in (2, 3, 4):
            longest, latest = (2, 0) if tasks == 4 and run.small else (2, 1)
            for instance in instances(tasks, longest, latest, 1, 2):
                for server in pairs(2):
                    yield instance._replace(servers=(*instance.servers, server))

    def flaw(instance: Instance) -> dict[str, Any] | None:
        fewer = instance._replace(servers=instance.servers[:-1])
        before = total_delay(fewer, simulate(fewer, "bf-exec").start)
        after = total_delay(instance, simulate(instance, "bf-exec").start) if before else 0
        return {"without_the_last": before, "with_it": after} if after > before else None

    text = "a task that starts sooner may make two others wait (given are sums of delays)"
    return found_against(REFUTED, find_flaw(cases(), flaw), text)


LITERAL = ("ff", "bf", "wf")


def _confirm_stranded(shown: Shown) -> bool:
    """Confirm in the environment that all four strand the same tasks, and their repaired versions none."""
    instance = read_instance(shown)
    stranded = [
        [i for i, start in enumerate(play_instance(instance, name).start) if start is None]
        for name in (*LITERAL, "rf")
    ]
    repaired = [play_instance(instance, f"{name}-all").start for name in (*LITERAL, "rf")]
    alike = all(tasks == shown["never_run"] != [] for tasks in stranded)
    return alike and not any(start is None for starts in repaired for start in starts)


@claim("literal-queue", confirm=_confirm_stranded)
def _check_literal_queue(run: Run) -> Finding:
    def flaw(instance: Instance) -> dict[str, Any] | None:
        never = [
            [i for i, start in enumerate(simulate(instance, name).start) if start is None] for name in LITERAL
        ]
        return {"never_run": never[0]} if never[0] and never.count(never[0]) == len(LITERAL) else None

    sizes = [(2, 2, 1, 2, 2), (3, 2, 1, 2, 2), (4, 1 if run.small else 2, 0, 2, 2)]
    searched = find_flaw((one for sizes_ in sizes for one in instances(*sizes_)), flaw)
    count = 400 if run.small else 10_000
    stranded = dict.fromkeys(LITERAL, 0)
    any_of_them = repaired = 0
    for _ in range(count):
        instance = draw(run.rng)
        found = {name: None in simulate(instance, name).start for name in LITERAL}
        for name in LITERAL:
            stranded[name] += found[name]
            repaired += None in simulate(instance, f"{name}-all").start
        any_of_them += any(found.values())
    figures = {"random": count, "random_stranded": stranded, "repaired_stranded": repaired}
    each = ", ".join(f"{name.upper()} {number}" for name, number in stranded.items())
    text = (
        f"and {any_of_them} of {count} random ones ({each}): the head may only fit a server that is already "
        f"idle then. If the head is tried on all servers, {repaired} tasks never run"
    )
    return found_against(CORRECTED if not repaired else REFUTED, searched, text, figures=figures)


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
def _check_every_task(run: Run) -> Finding:
    def runs(instance: Instance) -> bool:
        schedule = simulate(instance, "bf-exec")
        return None not in schedule.start and not _passed_over(instance, schedule)

    drawn = (draw(run.rng) for _ in range(1_000 if run.small else 10_000))
    checked, _, failed = count(itertools.chain(tiny_instances(run), drawn), runs)
    figures = {"checked": checked, "failed": failed}
    text = (
        f"true in {checked - failed:,} of {checked:,} instances: a waiting task fitted no server when it "
        "came, and is tried on each server that releases resources"
    )
    return Finding(judge(not failed), text, figures=figures)


def _shorter(
    run: Run, policies: Sequence[str], reference: str, rivals: Sequence[str]
) -> dict[str, tuple[float, float, float]]:
    """Return the share of runs in which the reference has the shorter mean delay, with its interval.

    The runs of an episode on several numbers of servers have the same tasks, so episodes are resampled.
    """
    from schedgym.evaluation.statistics import bootstrap_interval

    frame = sweep_policies(run, policies).frame
    delays = frame[frame["metric"] == "mean_delay"]
    table = delays.pivot(index=["episode", "servers"], columns="policy", values="value")
    found = {}
    for rival in rivals:
        shares = (table[reference] < table[rival]).astype(float).groupby("episode").mean().tolist()
        found[rival] = (math.fsum(shares) / len(shares), *bootstrap_interval(shares))
    return found


def _shown_shares(shares: dict[str, tuple[float, float, float]]) -> str:
    rows = ((rival, *share) for rival, share in shares.items())
    return ", ".join(f"{rival} {share:.0%} [{low:.0%}, {high:.0%}]" for rival, share, low, high in rows)


@claim("best-fit")
def _check_best_fit(run: Run) -> Finding:
    from schedgym.baselines.queue_delay.packing import pack
    from schedgym.evaluation.statistics import bootstrap_interval

    lists, items = (40, 200) if run.small else (400, 500)
    rivals = ("ff", "wf", "rf")
    extra: dict[str, list[float]] = {rival: [] for rival in rivals}
    for _ in range(lists):
        demands = run.rng.uniform(0.0, 1.0, (items, 2))
        bins = {rule: pack(demands, rule=rule, rng=run.rng).bins for rule in ("bf", *rivals)}
        for rival in rivals:
            extra[rival].append(float(bins[rival] - bins["bf"]))
    found = {rival: (float(np.mean(row)), *bootstrap_interval(row)) for rival, row in extra.items()}
    fewer = {rival: float(np.mean(np.array(row) > 0)) for rival, row in extra.items()}
    delays = _shorter(run, ("bf-all", "ff-all", "wf-all"), "bf-all", ("ff-all", "wf-all"))
    rows = ((rival, *row) for rival, row in found.items())
    shown = ", ".join(
        f"{rival.upper()} {mean:.1f} [{low:.1f}, {high:.1f}] (more in {fewer[rival]:.0%})"
        for rival, mean, low, high in rows
    )
    text = (
        f"bins more than with best fit in {lists} lists of {items} uniform demands: {shown}. As schedulers, "
        "with the head tried on all servers, best fit has the shorter delay in these shares of runs: "
        f"{_shown_shares(delays)}"
    )
    good = all(low > 0 for _, low, _ in found.values()) and min(fewer.values()) > 0.5
    figures = {"bins": found, "fewer": fewer, "delays": delays}
    return Finding(judge(good), text, figures=figures)


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


def _most_cases(name: str, metric: str, size: str, scheme: str) -> None:
    """Register the claim that one measure of size outperforms the other measures in most cases.

    Args:
        name: of the claim.
        metric: the measure in words.
        size: the measure in packings of bins.
        scheme: the scheme that schedules by it.
    """

    @claim(name)
    def _check(run: Run) -> Finding:
        if run.choice(OUTPERFORMING):
            counts = _fewer_bins(run, size)
            told = ", ".join(f"{other} {fewer} ({more})" for other, (fewer, more) in counts.items())
            text = (
                f"bin after bin by {metric} takes fewer (more) bins than first fit decreasing by {told}, of"
            )
            text += f" {len(RANGES) * (12 if run.small else 100)} lists; the others are equal"
            good = all(fewer > 2 * more for fewer, more in counts.values())
            return Finding(judge(good), text, figures={"lists": counts})
        others = tuple(f"ffd-{other}" for other in MEASURES)
        shares = _shorter(run, ("ffd-dp", "ffd-nb", *others), scheme, others)
        text = f"{scheme} has the shorter mean delay in these shares of runs: {_shown_shares(shares)}"
        good = all(low > 0.5 for _, low, _ in shares.values())
        return Finding(judge(good), text, figures={"shares": shares})


_most_cases("dot-product", "the dot product", "dot", "ffd-dp")
_most_cases("l2-norm", "the L2 norm", "norm", "ffd-nb")


# section III-B: the shortest task first --------------------------------------------------------------


def _shortest_first(instance: Instance) -> int:
    """Return the sum of delays if tasks that arrive together are offered by increasing execution time."""
    tasks = sorted(instance.tasks, key=lambda task: task.execution)
    ordered = instance._replace(tasks=tuple(tasks))
    return total_delay(ordered, simulate(ordered, "bf-exec").start)


@claim("same-size")
def _check_same_size(run: Run) -> Finding:
    cases = (
        Instance(tuple(Task(0, e, 1, 1) for e in lengths), tuple((c, c) for c in capacities))
        for capacities in ((1,), (2,), (3,), (1, 2), (1, 1))
        for lengths in itertools.combinations_with_replacement(range(1, 5 if run.small else 6), 4)
    )
    checked, _, worse = count(cases, lambda case: bool(_shortest_first(case) == optimum(case)[0]))
    figures = {"checked": checked, "worse": worse}
    text = (
        f"optimal in {checked - worse} of {checked} instances of 4 tasks on 1 or 2 servers, which run 1 "
        "to 3 tasks at once"
    )
    return Finding(judge(not worse), text, figures=figures)


def _confirm_not_optimal(shown: Shown) -> bool:
    """Confirm by the registered BF-EXEC, which is the greedy rule if tasks are sorted by execution time."""
    instance = read_instance(shown)
    better = Schedule(tuple(shown["start"]), tuple(shown["server"]))
    own = round(len(instance.tasks) * play_instance(instance, "bf-exec").metrics["mean_delay"])
    return (
        feasible(instance, better)
        and total_delay(instance, better.start) == shown["better"]
        and own == shown["delay"] > shown["better"]
    )


def _worse_than_optimal(instance: Instance) -> dict[str, Any] | None:
    own = total_delay(instance, simulate(instance, "bf-exec").start)
    if own == 0:
        return None
    best, schedule = optimum(instance)
    if own == best:
        return None
    return {"delay": own, "better": best, "start": list(schedule.start), "server": list(schedule.server)}


def _confirm_greedy(shown: Shown) -> bool:
    in_order = shown["execution"] == sorted(shown["execution"])
    one_dimension = shown["cpu"] == shown["memory"] and len(shown["servers"]) == 1
    return in_order and one_dimension and not any(shown["arrival"]) and _confirm_not_optimal(shown)


@claim("greedy-optimal", confirm=_confirm_greedy)
def _check_greedy(run: Run) -> Finding:
    def cases() -> Iterator[Instance]:
        for number, longest, unit in ((1, 3, 2), (2, 4, 3), (3, 4, 2)) + (() if run.small else ((4, 4, 2),)):
            kinds = list(itertools.product(range(1, longest + 1), range(1, unit + 1)))
            for tasks in itertools.combinations_with_replacement(kinds, number):
                yield Instance(tuple(Task(0, e, d, d) for e, d in tasks), ((unit, unit),))

    searched = find_flaw(cases(), _worse_than_optimal)
    text = "for tasks of different sizes; it is optimal if all tasks have the same size (statement same-size)"
    return found_against(CORRECTED, searched, text)


def _confirm_same_size(shown: Shown) -> bool:
    same = len(set(zip(shown["cpu"], shown["memory"], strict=True))) == 1
    return same and not any(shown["arrival"]) and _confirm_not_optimal(shown)


@claim("bf-exec-same-size", confirm=_confirm_same_size)
def _check_bf_exec_same_size(run: Run) -> Finding:
    cases = (
        Instance(tuple(Task(0, e, 1, 1) for e in lengths), ((1, 1),))
        for count in (1, 2, 3)
        for lengths in itertools.product((1, 2, 3), repeat=count)
    )
    text = (
        "tasks that find a free server start in order of submission, as the first phase does not use "
        "execution times"
    )
    return found_against(REFUTED, find_flaw(cases, _worse_than_optimal), text)


# section IV: the scheme ------------------------------------------------------------------------------


def _confirm_before(shown: Shown) -> bool:
    instance = read_instance(shown)
    ((_, _, c, m),) = instance.tasks
    before = {j: x * x + y * y for j, (x, y) in enumerate(instance.servers) if c <= x and m <= y}
    chosen = [j for j, norm in before.items() if norm == min(before.values())]
    after = play_instance(instance, "bf-exec").server
    return chosen == [shown["before"]] and after == [shown["after"]] and chosen != after


@claim("best-fit-before", confirm=_confirm_before)
def _check_before(run: Run) -> Finding:
    one_resource = 0

    def cases() -> Iterator[Instance]:
        for unit in (1, 2, 4):
            for servers in clusters(2, unit):
                for c, m in pairs(unit):
                    if any(c <= x and m <= y for x, y in servers):
                        yield Instance((Task(0, 1, c, m),), servers)

    def flaw(instance: Instance) -> dict[str, Any] | None:
        nonlocal one_resource
        (task,) = instance.tasks
        before, after = (select(rule, task, instance.servers) for rule in ("best-before", "best"))
        line = [(x, 0) for x, _ in instance.servers]  # the same without memory
        own = task._replace(memory=0)
        one_resource += select("best-before", own, line) != select("best", own, line)
        norms = [x * x + y * y for x, y in instance.servers]
        tie = norms[before] == norms[after]  # as it is if both choose the same
        return None if tie else {"before": before, "after": after}

    searched = find_flaw(cases(), flaw)
    count = 2_000 if run.small else 10_000
    totals = {"bf-exec": 0, "bf-exec-before": 0}
    differ = 0
    for _ in range(count):
        instance = draw(run.rng)
        found = {name: total_delay(instance, simulate(instance, name).start) for name in totals}
        differ += found["bf-exec"] != found["bf-exec-before"]
        for name, delay in found.items():
            totals[name] += delay
    ratio = totals["bf-exec-before"] / totals["bf-exec"]
    figures = {"one_resource": one_resource, "random": count, "random_differ": differ, "delay_ratio": ratio}
    text = (
        f'with one resource in {one_resource}. "After the placement" is meant, as in best fit. Delays '
        "differ in"
    )
    text += f' {differ} of {count:,} random instances; with "before" they are {ratio:.3f} times as long'
    return found_against(CORRECTED, searched, text, figures=figures)


def _confirm_figure_1b(shown: Shown) -> bool:
    played = play_instance(read_instance(shown), "bf-exec").start
    return played == shown["start"]


@claim("figure-1b", confirm=_confirm_figure_1b)
def _check_figure_1b(run: Run) -> Finding:
    # one task stays on the server, one leaves 3/4 of it at time 1; then five, by execution time
    demands = ((4, 4), (4, 3), (2, 2), (3, 3), (2, 2))
    waiting = [Task(0, 2 + k, c, m) for k, (c, m) in enumerate(demands)]
    instance = Instance((Task(0, 9, 1, 1), Task(0, 1, 3, 3), *waiting), ((4, 4),))
    schedule = simulate(instance, "bf-exec")
    started = [i for i, start in enumerate(schedule.start) if start == 1]
    left = [4 - 1 - waiting[2].cpu, 4 - 1 - waiting[2].memory]
    good = started == [4] and waiting[4].cpu <= 3 and waiting[4].cpu > left[0]
    witness = show_instance(instance) | {"start": list(schedule.start)}
    text = "at time 1 three quarters of the server are free: tasks 2 and 3 need more, 4 starts, 6 has to wait"
    return Finding(judge(good), text, witness=witness)
