"""Section V: the bounds on the queuing delay, and the steps of their proofs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from schedgym.papers import CORRECTED, REFUTED, Finding, Run, Shown, judge
from schedgym.papers.noroozoliaee2014.instances import (
    claim,
    clusters,
    draw,
    find_flaw,
    instances,
    pairs,
    random_schedule,
    read_instance,
    tiny_instances,
    total_delay,
)
from schedgym.papers.noroozoliaee2014.model import (
    LOWER,
    PRINTED_LOWER,
    PRINTED_UPPER,
    UPPER,
    Instance,
    Measured,
    Reading,
    Schedule,
    Server,
    Task,
    at_once,
    batch_bound,
    feasible,
    largest_demands,
    least_demands,
    lower_bound,
    measure,
    on_one,
    optimum,
    pooled_bound,
    simulate,
    upper_bound,
)
from schedgym.papers.noroozoliaee2014.runs import play_instance
from schedgym.papers.searches import Searched, count, found_against

_FFD = [name + end for end in ("", "-blocking", "-bypass") for name in ("ffd-nb", "ffd-dp")]
_LITERAL = [name + end for name in ("ff", "bf", "wf") for end in ("", "-all")]
NAMED = ("bf-exec", *_FFD, "fcfs", *_LITERAL)


def _alike(instance: Instance, demand: Server) -> Instance:
    """The instance with one demand for all tasks."""
    tasks = tuple(task._replace(cpu=demand[0], memory=demand[1]) for task in instance.tasks)
    return instance._replace(tasks=tasks)


def _confirm_bound(side: str, reading: Reading) -> Callable[[Shown], bool]:
    """Recompute the bound in floating point from the environment's metrics of the registered BF-EXEC."""

    def confirm(shown: Shown) -> bool:
        instance = read_instance(shown)
        measured = play_instance(instance, "bf-exec").metrics
        demands = [[float(Fraction(x)) for x in shown[name]] for name in ("cpu", "memory")]
        extreme = [(max if side == "upper" else min)(column) for column in demands]
        servers = [[float(Fraction(x)) for x in server] for server in shown["servers"]]
        if not reading.every:
            servers = [[1.0, 1.0]]
        k = sum(
            math.floor(reading.pick(*(x / d + 1e-9 for x, d in zip(server, extreme, strict=True))))
            for server in servers
        )
        service = sum(shown["execution"]) / len(shown["execution"])
        mu = service + (measured["mean_delay"] if reading.response else 0.0)
        factor = measured["beta"] if reading.beta else 1.0
        bound = mu - factor * k * measured["makespan"] / len(instance.tasks)
        stated = [float(Fraction(shown[name])) for name in ("W", "bound")]
        if not np.allclose([measured["mean_delay"], bound], stated, rtol=0, atol=1e-9):
            return False
        below = stated[0] - stated[1]
        return below > 1e-9 if side == "upper" else below < -1e-9

    return confirm


def _violation(side: str, reading: Reading) -> Callable[[Instance], dict[str, Any] | None]:
    """Return a search criterion: BF-EXEC's schedule violates this form of a theorem."""

    def flaw(instance: Instance) -> dict[str, Any] | None:
        found = measure(instance, simulate(instance, "bf-exec"))
        bound = (upper_bound if side == "upper" else lower_bound)(instance, found, reading)
        if (found.delay <= bound) if side == "upper" else (found.delay >= bound):
            return None
        return {
            "W": str(found.delay),
            "bound": str(bound),
            "lambda": str(1 / found.gap),
            "beta": str(found.beta),
        }

    return flaw


def _measured(instance: Instance, schemes: Iterable[str]) -> list[Measured]:
    """Measure the schedules of the schemes under which every task runs."""
    schedules = (simulate(instance, name) for name in schemes)
    return [measure(instance, one) for one in schedules if None not in one.start]


class _Violations(NamedTuple):
    """Numbers of random instances in which some schedule violates a form of a theorem."""

    instances: int
    schedules: int
    printed: int  # mu the mean execution time
    printed_response: int  # mu the mean response time
    corrected: int


def _violations(run: Run, side: str) -> _Violations:
    """Check both forms of a theorem under all schemes, the lower bound also for random schedules."""
    bound = upper_bound if side == "upper" else lower_bound
    printed = PRINTED_UPPER if side == "upper" else PRINTED_LOWER
    forms = (printed, printed._replace(response=True), UPPER if side == "upper" else LOWER)
    instances, schedules = 2_000 if run.small else 20_000, 0
    broken = [0, 0, 0]
    for _ in range(instances):
        instance = draw(run.rng)
        found = _measured(instance, NAMED)
        if side == "lower":
            found += [measure(instance, random_schedule(run.rng, instance)) for _ in range(3)]
        schedules += len(found)
        for k, form in enumerate(forms):
            broken[k] += any(
                one.delay > bound(instance, one, form)
                if side == "upper"
                else one.delay < bound(instance, one, form)
                for one in found
            )
    return _Violations(instances, schedules, *broken)


def _theorem(run: Run, side: str, reading: Reading, text: str) -> Finding:
    """Check a theorem: find the smallest violation as printed; try the corrected form on random instances."""
    searched = find_flaw(tiny_instances(run), _violation(side, reading))
    found = _violations(run, side)
    evidence = f"and, under at least one scheme, in {found.printed:,} of {found.instances:,} random ones"
    evidence += f" ({found.printed_response:,} with mu the mean response time). {text}: violated in"
    evidence += f" {found.corrected} of {found.schedules:,} schedules"
    verdict = CORRECTED if not found.corrected else REFUTED
    return found_against(verdict, searched, evidence, figures=found._asdict())


@claim("theorem-5.1", confirm=_confirm_bound("upper", PRINTED_UPPER))
def _check_theorem_5_1(run: Run) -> Finding:
    text = (
        "W <= T - beta k_low / lambda, for schedulers under which no task waits that fits a server, as "
        "all of the paper's"
    )
    return _theorem(run, "upper", PRINTED_UPPER, text)


@claim("theorem-5.2", confirm=_confirm_bound("lower", PRINTED_LOWER))
def _check_theorem_5_2(run: Run) -> Finding:
    return _theorem(run, "lower", PRINTED_LOWER, "W >= T - k_high / lambda, for any scheduler")


@claim("theorem-5.2-single")
def _check_one_server(run: Run) -> Finding:
    def holds(instance: Instance) -> Iterator[bool]:
        found = _measured(instance, ("bf-exec", "ffd-dp", "fcfs"))
        for one in (*found, measure(instance, random_schedule(run.rng, instance))):
            for response in (False, True):
                reading = PRINTED_LOWER._replace(response=response)
                yield one.delay >= lower_bound(instance, one, reading)

    counted = count((draw(run.rng, servers=1) for _ in range(1_000 if run.small else 10_000)), holds)
    figures = {"checked": counted.said, "broken": counted.false}
    text = f"true with both meanings of mu in {counted.said - counted.false:,} of {counted.said:,} cases"
    return Finding(judge(not counted.false), text, figures=figures)


def _same_demands() -> Iterator[Instance]:
    """Yield instances of three tasks with equal demands that arrive together, on two servers."""
    for unit in (2, 3, 4):
        for servers in clusters(2, unit):
            for c, m in pairs(unit):
                if any(c <= x and m <= y for x, y in servers):
                    for lengths in itertools.product((1, 2), repeat=3):
                        yield Instance(tuple(Task(0, e, c, m) for e in lengths), servers)


def _ingredient(name: str, side: str, reading: Reading, why: str) -> None:
    """Register the claim that a theorem holds with all corrections except one."""

    @claim(name, confirm=_confirm_bound(side, reading))
    def _check(run: Run) -> Finding:
        cases: Iterable[Instance] = tiny_instances(run)
        if name == "theorem-5.1-one-server":
            cases = itertools.chain(tiny_instances(run, 2), _same_demands())
        return found_against(REFUTED, find_flaw(cases, _violation(side, reading)), why)


WITHOUT = (
    ("max", UPPER._replace(pick=max), "the resource of which less is left limits how many tasks run"),
    ("one-server", UPPER._replace(every=False), "two narrow servers may hold fewer tasks than one of size 1"),
    ("beta", UPPER._replace(beta=False), "while nothing waits, servers may be idle"),
    (
        "execution",
        UPPER._replace(response=False),
        "lambda mu is then the mean number of running tasks only",
    ),
)
for _name, _reading, _why in WITHOUT:
    _ingredient(f"theorem-5.1-{_name}", "upper", _reading, _why)
_ingredient(
    "theorem-5.2-one-server",
    "lower",
    LOWER._replace(every=False),
    "this alone makes the printed form false",
)


def _confirm_idle(shown: Shown) -> bool:
    """Recompute W from the starts, 1 / lambda from the makespan, and beta from the union of waiting times."""
    instance = read_instance(shown)
    start = shown["start"]
    if not feasible(instance, Schedule(tuple(start), tuple(shown["server"]))):
        return False
    count = len(start)
    ends = [s + e for s, e in zip(start, shown["execution"], strict=True)]
    waits = set().union(*(range(a, s) for a, s in zip(shown["arrival"], start, strict=True)))
    delay = Fraction(sum(start) - sum(shown["arrival"]), count)
    response = delay + Fraction(sum(shown["execution"]), count)
    k = sum(
        min(
            math.floor(Fraction(x) / max(Fraction(d) for d in shown[name]))
            for x, name in zip(server, ("cpu", "memory"), strict=True)
        )
        for server in shown["servers"]
    )
    bound = response - Fraction(len(waits) * k, count)  # beta / lambda = the time in which tasks wait / tasks
    return max(ends) > 0 and [str(delay), str(bound)] == [shown["W"], shown["bound"]] and delay > bound


@claim("theorem-5.1-any-scheduler", confirm=_confirm_idle)
def _check_any_scheduler(run: Run) -> Finding:
    def flaw(instance: Instance) -> dict[str, Any] | None:
        for late in itertools.product(range(3), repeat=len(instance.tasks)):
            start = tuple(task.arrival + wait for task, wait in zip(instance.tasks, late, strict=True))
            for server in itertools.product(range(len(instance.servers)), repeat=len(start)):
                schedule = Schedule(start, server)
                if feasible(instance, schedule):
                    found = measure(instance, schedule)
                    bound = upper_bound(instance, found)
                    if found.delay > bound:
                        shown = {"start": list(start), "server": list(server)}
                        return shown | {"W": str(found.delay), "bound": str(bound)}
        return None

    text = "a scheduler may leave a task waiting although it fits a server"
    return found_against(REFUTED, find_flaw(tiny_instances(run, 1), flaw), text)


# the steps of the proofs


def _confirm_running(side: str) -> Callable[[Shown], bool]:
    def confirm(shown: Shown) -> bool:
        """Count running tasks in the environment's schedule; recompute the printed number from the shares."""
        instance = read_instance(shown)
        played = play_instance(instance, "bf-exec")
        begins = [s for s in played.start if s is not None]
        ends = [s + e for s, e in zip(begins, shown["execution"], strict=True)]
        shares = [[Fraction(x) for x in shown[name]] for name in ("cpu", "memory")]
        if side == "least":
            printed = math.floor(max(1 / max(column) for column in shares))
            return (
                printed == shown["printed"]
                and math.isclose(played.metrics["mean_running"], float(Fraction(shown["N_r"])))
                and Fraction(shown["N_r"]) < printed
            )
        printed = math.floor(min(1 / min(column) for column in shares))
        most = max(sum(s <= t < end for s, end in zip(begins, ends, strict=True)) for t in begins)
        return printed == shown["printed"] and most == shown["N_r"] > printed

    return confirm


def _corrected(searched: Searched, text: str, schedules: int, broken: int) -> Finding:
    """Judge a corrected form that fails in ``broken`` of several schedules; the printed form is refuted."""
    figures = {"schedules": schedules, "corrected": broken}
    return found_against(CORRECTED if not broken else REFUTED, searched, text, figures=figures)


def _under_all_schemes(run: Run, holds: Callable[[Instance, Measured], bool]) -> tuple[int, int]:
    """Check a corrected form on random instances; count schedules and violations."""

    def each(instance: Instance) -> list[bool]:
        return [holds(instance, found) for found in _measured(instance, NAMED)]

    counted = count((draw(run.rng) for _ in range(500 if run.small else 10_000)), each)
    return counted.said, counted.false


@claim("running-at-least", confirm=_confirm_running("least"))
def _check_running_least(run: Run) -> Finding:
    def flaw(instance: Instance) -> dict[str, Any] | None:
        found = measure(instance, simulate(instance, "bf-exec"))
        printed = on_one(instance, largest_demands(instance), max)
        return {"N_r": str(found.running), "printed": printed} if found.running < printed else None

    searched = find_flaw(tiny_instances(run), flaw)
    schedules, broken = _under_all_schemes(
        run,
        lambda instance, found: (
            found.least is None or found.least >= at_once(instance, largest_demands(instance))
        ),
    )
    text = f"at any time at which tasks wait, N_r >= k_low: violated in {broken} of {schedules:,} schedules"
    return _corrected(searched, text, schedules, broken)


@claim("running-at-most", confirm=_confirm_running("most"))
def _check_running_most(run: Run) -> Finding:
    def flaw(instance: Instance) -> dict[str, Any] | None:
        found = measure(instance, simulate(instance, "bf-exec"))
        printed = on_one(instance, least_demands(instance))
        return {"N_r": found.most, "printed": printed} if found.most > printed else None

    searched = find_flaw(tiny_instances(run), flaw)
    schedules, broken = _under_all_schemes(
        run, lambda instance, found: found.most <= at_once(instance, least_demands(instance))
    )
    text = f"at any time N_r <= k_high, over all servers: violated in {broken} of {schedules:,} schedules"
    return _corrected(searched, text, schedules, broken)


def _confirm_little(name: str) -> Callable[[Shown], bool]:
    def confirm(shown: Shown) -> bool:
        """Compare with the environment's own averages for the registered BF-EXEC."""
        measured = play_instance(read_instance(shown), "bf-exec").metrics
        count = len(shown["execution"])
        rate, service = count / measured["makespan"], sum(shown["execution"]) / count
        if name == "N":
            actual, printed = measured["mean_queued"] + measured["mean_running"], rate * service
        else:
            actual, printed = measured["mean_queued"], measured["mean_delay"] / rate
        stated = [float(Fraction(shown[key])) for key in (name, "printed")]
        return np.allclose([actual, printed], stated, rtol=0, atol=1e-9) and abs(stated[0] - stated[1]) > 1e-9

    return confirm


def _little(
    run: Run,
    name: str,
    actual: Callable[[Measured], Fraction],
    printed: Callable[[Measured], Fraction],
    meant: Callable[[Measured], Fraction],
    text: str,
) -> Finding:
    """Check a form of Little's law as printed, and the form that holds exactly."""

    def flaw(instance: Instance) -> dict[str, Any] | None:
        found = measure(instance, simulate(instance, "bf-exec"))
        if actual(found) == printed(found):
            return None
        return {name: str(actual(found)), "printed": str(printed(found)), "lambda": str(1 / found.gap)}

    searched = find_flaw(tiny_instances(run), flaw)
    schedules, broken = _under_all_schemes(run, lambda instance, found: actual(found) == meant(found))
    evidence = (
        f"{text} is exact in {schedules - broken:,} of {schedules:,} schedules, counted in each time unit"
    )
    return _corrected(searched, evidence, schedules, broken)


@claim("littles-law", confirm=_confirm_little("N"))
def _check_little(run: Run) -> Finding:
    return _little(
        run,
        "N",
        lambda found: found.queued + found.running,
        lambda found: found.execution / found.gap,
        lambda found: found.response / found.gap,
        "N = lambda T, with T = W + mu (lambda mu is N_r),",
    )


@claim("littles-law-queue", confirm=_confirm_little("N_q"))
def _check_little_queue(run: Run) -> Finding:
    return _little(
        run,
        "N_q",
        lambda found: found.queued,
        lambda found: found.delay * found.gap,
        lambda found: found.delay / found.gap,
        "N_q = lambda W",
    )


def _confirm_identical(extreme: Callable[[Instance], Server]) -> Callable[[Shown], bool]:
    def confirm(shown: Shown) -> bool:
        instance = read_instance(shown)
        same = _alike(instance, extreme(instance))
        delays = [
            round(len(instance.tasks) * play_instance(one, "bf-exec").metrics["mean_delay"])
            for one in (instance, same)
        ]
        wrong = delays[0] > delays[1] if extreme is largest_demands else delays[0] < delays[1]
        return delays == [shown["delay"], shown["delay_if_identical"]] and wrong

    return confirm


def _identical(run: Run, extreme: Callable[[Instance], Server], text: str) -> Finding:
    """Check that delays are longest (shortest) if all tasks have the largest (least) demands."""

    def flaw(instance: Instance) -> dict[str, Any] | None:
        demand = extreme(instance)
        same = _alike(instance, demand)
        if same == instance or not any(demand[0] <= x and demand[1] <= y for x, y in instance.servers):
            return None
        own, other = (total_delay(one, simulate(one, "bf-exec").start) for one in (instance, same))
        if (own <= other) if extreme is largest_demands else (own >= other):
            return None
        return {"delay": own, "delay_if_identical": other}

    sizes = [(2, 3, 1, 1, 2), (3, 4, 0, 1, 2), (4, 2, 0, 1, 2)]
    if not run.small:
        sizes += [(2, 2, 1, 2, 2), (3, 2, 1, 2, 2), (4, 3, 0, 1, 2)]
    searched = find_flaw((one for sizes_ in sizes for one in instances(*sizes_)), flaw)
    optimal = 0
    count = 100 if run.small else 2_000
    for _ in range(count):
        instance = draw(run.rng, tasks=4, servers=2, longest=4)
        demand = extreme(instance)
        same = _alike(instance, demand)
        if any(demand[0] <= x and demand[1] <= y for x, y in instance.servers):
            own, other = optimum(instance)[0], optimum(same)[0]
            optimal += own > other if extreme is largest_demands else own < other
    text += f"; for optimal schedules it is true ({optimal} violations in {count:,} random instances)"
    return found_against(REFUTED, searched, text, figures={"optimal_violations": optimal})


@claim("identical-largest", confirm=_confirm_identical(largest_demands))
def _check_identical_largest(run: Run) -> Finding:
    text = "a long task that does not fit beside short ones waits until they are done"
    return _identical(run, largest_demands, text)


@claim("identical-least", confirm=_confirm_identical(least_demands))
def _check_identical_least(run: Run) -> Finding:
    text = "a long task that fits sooner delays the others"
    return _identical(run, least_demands, text)


def _confirm_cancel(shown: Shown) -> bool:
    """Confirm two feasible schedules that agree in all terms of the inequalities, but differ in W."""
    instance = read_instance(shown)
    if not feasible(instance, Schedule(tuple(shown["start"]), tuple(shown["server"]))):
        return False
    if play_instance(instance, "bf-exec").start != shown["bf_exec_start"]:
        return False
    facts = []
    for start in (shown["bf_exec_start"], shown["start"]):
        ends = [s + e for s, e in zip(start, shown["execution"], strict=True)]
        waits = set().union(*(range(a, s) for a, s in zip(shown["arrival"], start, strict=True)))
        facts.append((max(ends), len(waits), Fraction(sum(start) - sum(shown["arrival"]), len(start))))
    (end, waited, one), (other_end, other_waited, other) = facts
    return (
        (end, waited) == (other_end, other_waited) and [str(one), str(other)] == shown["W"] and one != other
    )


@claim("bounds-on-the-delay", confirm=_confirm_cancel)
def _check_cancel(run: Run) -> Finding:
    def flaw(instance: Instance) -> dict[str, Any] | None:
        greedy = simulate(instance, "bf-exec")
        if not total_delay(instance, greedy.start):
            return None
        _, schedule = optimum(instance)
        own, other = (measure(instance, each) for each in (greedy, schedule))
        if own.delay == other.delay or (own.gap, own.beta) != (other.gap, other.beta):
            return None
        return {
            "bf_exec_start": list(greedy.start),
            "start": list(schedule.start),
            "server": list(schedule.server),
            "W": [str(own.delay), str(other.delay)],
        }

    sizes = [(2, 3, 1, 1, 1), (3, 3, 0, 1, 1), (3, 2, 1, 1, 2)]
    searched = find_flaw((one for sizes_ in sizes for one in instances(*sizes_)), flaw)
    text = (
        "T is W + mu, so W cancels, and they only state beta k_low <= lambda mu <= k_high. The "
        "counterexample is two schedules with the same lambda and beta, but different delays"
    )
    return found_against(REFUTED, searched, text)


@claim("lower-bounds")
def _check_lower_bounds(run: Run) -> Finding:
    count = 500 if run.small else 10_000
    beaten = 0
    share = {"pooled": Fraction(0), "batch": Fraction(0)}  # largest share of the optimum
    for n in range(count):
        instance = draw(run.rng, tasks=4, servers=2, longest=4)
        if n % 2:
            together = tuple(task._replace(arrival=0) for task in instance.tasks)
            instance = instance._replace(tasks=together)
        best = Fraction(optimum(instance)[0], len(instance.tasks))
        bounds = {"pooled": max(pooled_bound(instance, 0), pooled_bound(instance, 1))}
        if instance.tasks[0].arrival == instance.tasks[-1].arrival:
            bounds["batch"] = batch_bound(instance)
        for name, bound in bounds.items():
            beaten += bound > best
            share[name] = max(share[name], bound / best if best else Fraction(0))
    largest = {name: str(ratio) for name, ratio in share.items()}
    figures = {"checked": count, "beaten": beaten, "largest_share": largest}
    text = (
        f"at most the optimum in all but {beaten} of {count:,} instances with up to 4 tasks; the largest "
        f"bound / optimum is {float(share['pooled']):.3f} (pooled) and {float(share['batch']):.3f} (batch)"
    )
    return Finding(judge(not beaten), text, figures=figures)
