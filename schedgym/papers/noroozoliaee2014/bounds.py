"""Section V: the bounds on the queuing delay, and the steps of their proofs."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

from schedgym.papers import CORRECTED, REFUTED, Finding, Run, Shown, judge
from schedgym.papers.noroozoliaee2014 import model
from schedgym.papers.noroozoliaee2014.instances import (
    claim,
    clusters,
    draw,
    find_flaw,
    instances,
    pairs,
    random_schedule,
    read_instance,
    read_schedule,
    show_schedule,
    tiny_instances,
    total_delay,
)
from schedgym.papers.noroozoliaee2014.model import Instance, Measured, Reading, Schedule, Server, Task
from schedgym.papers.noroozoliaee2014.runs import Flaw, Play, in_environment
from schedgym.papers.searches import Details, Sentences, count

_FFD = [name + end for end in ("", "-blocking", "-bypass") for name in ("ffd-nb", "ffd-dp")]
_LITERAL = [name + end for name in ("ff", "bf", "wf") for end in ("", "-all")]
NAMED = ("bf-exec", *_FFD, "fcfs", *_LITERAL)


def _alike(instance: Instance, demand: Server) -> Instance:
    """The instance with one demand for all tasks."""
    tasks = tuple(Task(task.arrival, task.execution, *demand) for task in instance.tasks)
    return instance._replace(tasks=tasks)


def _bound(instance: Instance, found: Measured, reading: Reading) -> tuple[Any, bool]:
    """Return the bound of a theorem, and whether a schedule violates it."""
    bound = model.bound(instance, found, reading)
    return bound, found.delay > bound if reading.upper else found.delay < bound


def _violation(reading: Reading) -> Flaw:
    """Return a search criterion: BF-EXEC's schedule violates this form of a theorem."""

    def flaw(instance: Instance, play: Play = model.simulate) -> Details:
        found = model.measure(instance, play(instance, "bf-exec"))
        bound, violated = _bound(instance, found, reading)
        texts = {"W": found.delay, "bound": bound, "lambda": 1 / found.gap, "beta": found.beta}
        return {name: str(number) for name, number in texts.items()} if violated else None

    return flaw


def _measured(instance: Instance, schemes: Iterable[str]) -> list[Measured]:
    """Measure the schedules of the schemes under which every task runs."""
    schedules = (model.simulate(instance, name) for name in schemes)
    return [model.measure(instance, one) for one in schedules if None not in one.start]


class _Violations(NamedTuple):
    """Numbers of random instances in which some schedule violates a form of a theorem."""

    instances: int
    schedules: int
    printed: int  # mu the mean execution time
    printed_response: int  # mu the mean response time
    corrected: int


def _violations(run: Run, printed: Reading) -> _Violations:
    """Check both forms of a theorem under all schemes, the lower bound also for random schedules."""
    forms = (printed, printed._replace(response=True), model.UPPER if printed.upper else model.LOWER)
    instances, schedules = 2_000 if run.small else 20_000, 0
    broken = [0, 0, 0]
    for _ in range(instances):
        instance = draw(run.rng)
        found = _measured(instance, NAMED)
        if not printed.upper:
            found += [model.measure(instance, random_schedule(run.rng, instance)) for _ in range(3)]
        schedules += len(found)
        for k, form in enumerate(forms):
            broken[k] += any(_bound(instance, one, form)[1] for one in found)
    return _Violations(instances, schedules, *broken)


def _theorem(name: str, printed: Reading) -> None:
    """Register a theorem: the smallest violation as printed, and the corrected form on random instances."""
    flaw = _violation(printed)

    @claim(name, confirm=in_environment(flaw))
    def _check(run: Run, say: Sentences) -> Finding:
        searched = find_flaw(tiny_instances(run), flaw)
        found = _violations(run, printed)
        return say.against(CORRECTED if not found.corrected else REFUTED, searched, found._asdict())


_theorem("theorem-5.1", model.PRINTED_UPPER)
_theorem("theorem-5.2", model.PRINTED_LOWER)


@claim("theorem-5.2-single")
def _check_one_server(run: Run, say: Sentences) -> Finding:
    def holds(instance: Instance) -> Iterator[bool]:
        found = _measured(instance, ("bf-exec", "ffd-dp", "fcfs"))
        for one in (*found, model.measure(instance, random_schedule(run.rng, instance))):
            for response in (False, True):
                yield not _bound(instance, one, model.PRINTED_LOWER._replace(response=response))[1]

    counted = count((draw(run.rng, servers=1) for _ in range(1_000 if run.small else 10_000)), holds)
    figures = {"checked": counted.said, "broken": counted.false}
    return say(judge(not counted.false), figures, true=counted.true)


def _same_demands() -> Iterator[Instance]:
    """Yield instances of three tasks with equal demands that arrive together, on two servers."""
    for unit in (2, 3, 4):
        for servers in clusters(2, unit):
            for c, m in pairs(unit):
                if any(c <= x and m <= y for x, y in servers):
                    for lengths in itertools.product((1, 2), repeat=3):
                        yield Instance(tuple(Task(0, e, c, m) for e in lengths), servers)


def _ingredient(name: str, reading: Reading) -> None:
    """Register the claim that a theorem holds with all corrections except one."""
    flaw = _violation(reading)

    @claim(name, confirm=in_environment(flaw))
    def _check(run: Run, say: Sentences) -> Finding:
        cases: Iterable[Instance] = tiny_instances(run)
        if name == "theorem-5.1-one-server":
            cases = itertools.chain(tiny_instances(run, 2), _same_demands())
        return say.against(REFUTED, find_flaw(cases, flaw))


_ingredient("theorem-5.1-max", model.UPPER._replace(pick=max))
_ingredient("theorem-5.1-one-server", model.UPPER._replace(every=False))
_ingredient("theorem-5.1-beta", model.UPPER._replace(beta=False))
_ingredient("theorem-5.1-execution", model.UPPER._replace(response=False))
_ingredient("theorem-5.2-one-server", model.LOWER._replace(every=False))


def _idle(instance: Instance, schedules: Iterable[Schedule]) -> Details:
    """Return the first of these schedules that is feasible and violates Theorem 5.1 as corrected."""
    for schedule in schedules:
        if model.feasible(instance, schedule):
            found = model.measure(instance, schedule)
            bound, violated = _bound(instance, found, model.UPPER)
            if violated:
                return show_schedule(schedule) | {"W": str(found.delay), "bound": str(bound)}
    return None


def _schedules(instance: Instance) -> Iterator[Schedule]:
    """Yield schedules in which each task starts up to two units of time after its arrival, on any server."""
    for late in itertools.product(range(3), repeat=len(instance.tasks)):
        start = tuple(task.arrival + wait for task, wait in zip(instance.tasks, late, strict=True))
        for server in itertools.product(range(len(instance.servers)), repeat=len(start)):
            yield Schedule(start, server)


def _confirm_idle(shown: Shown) -> bool:
    """Recompute W from the starts, and beta / lambda, the time in which tasks wait per task, unit by unit."""
    instance, schedule = read_instance(shown), read_schedule(shown)
    waits = [set(range(a, s)) for a, s in zip(shown["arrival"], shown["start"], strict=True)]
    delay = Fraction(sum(map(len, waits)), len(waits))
    response = delay + Fraction(sum(shown["execution"]), len(waits))
    k = model.at_once(instance, model.largest_demands(instance))
    bound = response - Fraction(k * len(set().union(*waits)), len(waits))
    shows = [str(delay), str(bound)] == [shown["W"], shown["bound"]] and delay > bound
    return shows and model.feasible(instance, schedule)


@claim("theorem-5.1-any-scheduler", confirm=_confirm_idle)
def _check_any_scheduler(run: Run, say: Sentences) -> Finding:
    cases = tiny_instances(run, 1)
    return say.against(REFUTED, find_flaw(cases, lambda instance: _idle(instance, _schedules(instance))))


# the steps of the proofs


def _step(name: str, flaw: Flaw, holds: Callable[[Instance, Measured], bool]) -> None:
    """Register a step of the proofs: a flaw of BF-EXEC as printed, and what schedules of all schemes keep."""

    @claim(name, confirm=in_environment(flaw))
    def _check(run: Run, say: Sentences) -> Finding:
        searched = find_flaw(tiny_instances(run), flaw)
        drawn = (draw(run.rng) for _ in range(500 if run.small else 10_000))
        counted = count(drawn, lambda case: [holds(case, found) for found in _measured(case, NAMED)])
        figures = {"schedules": counted.said, "corrected": counted.false}
        verdict = CORRECTED if not counted.false else REFUTED
        return say.against(verdict, searched, figures, exact=counted.true)


def _too_few(instance: Instance, play: Play = model.simulate) -> Details:
    found = model.measure(instance, play(instance, "bf-exec"))
    printed = model.on_one(instance, model.largest_demands(instance), max)
    return {"N_r": str(found.running), "printed": printed} if found.running < printed else None


def _too_many(instance: Instance, play: Play = model.simulate) -> Details:
    found = model.measure(instance, play(instance, "bf-exec"))
    printed = model.on_one(instance, model.least_demands(instance))
    return {"N_r": found.most, "printed": printed} if found.most > printed else None


def _waiting_fill(instance: Instance, found: Measured) -> bool:
    """Return whether k_low tasks run at any time at which tasks wait."""
    return found.least is None or found.least >= model.at_once(instance, model.largest_demands(instance))


_step("running-at-least", _too_few, _waiting_fill)
_step(
    "running-at-most",
    _too_many,
    lambda case, found: found.most <= model.at_once(case, model.least_demands(case)),
)


def _little(
    claim_name: str,
    name: str,
    actual: Callable[[Measured], Fraction],
    printed: Callable[[Measured], Fraction],
    meant: Callable[[Measured], Fraction],
) -> None:
    """Register a form of Little's law as printed, and the form that holds exactly."""

    def flaw(instance: Instance, play: Play = model.simulate) -> Details:
        found = model.measure(instance, play(instance, "bf-exec"))
        if actual(found) == printed(found):
            return None
        return {name: str(actual(found)), "printed": str(printed(found)), "lambda": str(1 / found.gap)}

    _step(claim_name, flaw, lambda instance, found: actual(found) == meant(found))


_little(
    "littles-law",
    "N",
    lambda found: found.queued + found.running,
    lambda found: found.execution / found.gap,
    lambda found: found.response / found.gap,
)
_little(
    "littles-law-queue",
    "N_q",
    lambda found: found.queued,
    lambda found: found.delay * found.gap,
    lambda found: found.delay / found.gap,
)


def _identical(name: str, extreme: Callable[[Instance], Server], beyond: Callable[[Any, Any], bool]) -> None:
    """Register the claim that no delay is beyond that of tasks that all have the ``extreme`` demands."""

    def flaw(instance: Instance, play: Play = model.simulate) -> Details:
        demand = extreme(instance)
        same = _alike(instance, demand)
        if same == instance or not any(demand[0] <= x and demand[1] <= y for x, y in instance.servers):
            return None
        own, other = (total_delay(one, play(one, "bf-exec").start) for one in (instance, same))
        return {"delay": own, "delay_if_identical": other} if beyond(own, other) else None

    @claim(name, confirm=in_environment(flaw))
    def _check(run: Run, say: Sentences) -> Finding:
        sizes = [(2, 3, 1, 1, 2), (3, 4, 0, 1, 2), (4, 2, 0, 1, 2)]
        if not run.small:
            sizes += [(2, 2, 1, 2, 2), (3, 2, 1, 2, 2), (4, 3, 0, 1, 2)]
        searched = find_flaw((one for sizes_ in sizes for one in instances(*sizes_)), flaw)
        optimal, drawn = 0, 100 if run.small else 2_000
        for _ in range(drawn):
            instance = draw(run.rng, tasks=4, servers=2, longest=4)
            demand = extreme(instance)
            if any(demand[0] <= x and demand[1] <= y for x, y in instance.servers):
                optimal += beyond(model.optimum(instance)[0], model.optimum(_alike(instance, demand))[0])
        verdict = REFUTED if optimal else CORRECTED
        return say.against(verdict, searched, {"optimal_violations": optimal}, drawn=drawn)


_identical("identical-largest", model.largest_demands, operator.gt)
_identical("identical-least", model.least_demands, operator.lt)


def _differ(instance: Instance, play: Play = model.simulate) -> Details:
    """Return BF-EXEC's schedule and an optimal one that differ in W, but not in lambda and beta."""
    greedy = play(instance, "bf-exec")
    if not total_delay(instance, greedy.start):
        return None
    _, schedule = model.optimum(instance)
    own, other = (model.measure(instance, each) for each in (greedy, schedule))
    if own.delay == other.delay or (own.gap, own.beta) != (other.gap, other.beta):
        return None
    delays = {"W": [str(own.delay), str(other.delay)]}
    return {"bf_exec_start": list(greedy.start)} | show_schedule(schedule) | delays


@claim("bounds-on-the-delay", confirm=in_environment(_differ))
def _check_cancel(run: Run, say: Sentences) -> Finding:
    sizes = [(2, 3, 1, 1, 1), (3, 3, 0, 1, 1), (3, 2, 1, 1, 2)]
    return say.against(REFUTED, find_flaw((one for size in sizes for one in instances(*size)), _differ))


@claim("lower-bounds")
def _check_lower_bounds(run: Run, say: Sentences) -> Finding:
    count = 500 if run.small else 10_000
    beaten = 0
    share = {"pooled": Fraction(0), "batch": Fraction(0)}  # largest share of the optimum
    for n in range(count):
        instance = draw(run.rng, tasks=4, servers=2, longest=4)
        if n % 2:
            together = tuple(Task(0, *task[1:]) for task in instance.tasks)
            instance = instance._replace(tasks=together)
        best = Fraction(model.optimum(instance)[0], len(instance.tasks))
        bounds = {"pooled": max(model.pooled_bound(instance, 0), model.pooled_bound(instance, 1))}
        if instance.tasks[0].arrival == instance.tasks[-1].arrival:
            bounds["batch"] = model.batch_bound(instance)
        for name, bound in bounds.items():
            beaten += bound > best
            share[name] = max(share[name], bound / best if best else Fraction(0))
    largest = {name: str(ratio) for name, ratio in share.items()}
    figures = {"checked": count, "beaten": beaten, "largest_share": largest}
    return say(judge(not beaten), figures, pooled=float(share["pooled"]), batch=float(share["batch"]))
