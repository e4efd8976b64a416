"""Section VI: the experiments.

The paper leaves open whether the front of FFD's queue blocks, and over which time the utilisation is taken
(``readings.yaml``).
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from schedgym.core.arrays import Floats
from schedgym.evaluation.statistics import bootstrap_interval
from schedgym.papers import Evaluation, Finding, Run, Shown, Verdict, judge
from schedgym.papers.judging import grows, judge_claim, tell_mean, verdict_of
from schedgym.papers.noroozoliaee2014.instances import OPEN, claim, draw, find_flaw, instances, total_delay
from schedgym.papers.noroozoliaee2014.model import Instance, simulate, utilisation
from schedgym.papers.noroozoliaee2014.runs import Play, in_environment, sweep_policies
from schedgym.papers.searches import Details, Sentences, count

FFD = ("ffd-nb", "ffd-dp")
COMPARED = ("bf-exec", *(name + end for end in OPEN["HEAD"].choices.values() for name in FFD), "fcfs")
RESOURCES = ("cpu", "memory")


class _Compared(NamedTuple):
    """Means of a rival relative to those of BF-EXEC, by number of servers."""

    servers: list[int]
    relative: list[float]
    low: list[float]
    high: list[float]

    @property
    def more(self) -> list[bool]:
        """Whether the rival's are significantly larger."""
        return [low > 0 for low in self.low]

    @property
    def less(self) -> list[bool]:
        """Whether the rival's are significantly smaller."""
        return [high < 0 for high in self.high]

    def __str__(self) -> str:
        rows = zip(*self, strict=True)
        return ", ".join(f"{n}: {r:+.0%} [{low:+.0%}, {high:+.0%}]" for n, r, low, high in rows)


def _compare(played: Evaluation, rival: str, metric: str) -> _Compared:
    pair = played.select(lambda _, policy: policy in ("bf-exec", rival))
    own = pair.differences("bf-exec", metric)
    names = ("servers", "relative", "relative_low", "relative_high")
    return _Compared(*(own[name].tolist() for name in names))


def _in_all(cases: Iterable[object]) -> Verdict:
    """Return the verdict on a statement that is true in these cases."""
    return verdict_of(map(judge, cases))


def _servers(played: Evaluation) -> list[int]:
    """Return the numbers of servers in ascending order."""
    return sorted({entry.setting["servers"] for entry in played.observed})


def _by_servers(played: Evaluation, policy: str, metric: str) -> list[Floats]:
    """Return a metric of each draw, by number of servers."""
    return [played.metric(policy, metric, servers=n) for n in _servers(played)]


def _means(played: Evaluation, policy: str, metric: str, digits: int) -> list[float]:
    """Return the mean of a metric by number of servers."""
    return _rounded(map(np.mean, _by_servers(played, policy, metric)), digits)


def _as_stated(draws: Floats) -> bool:
    """Return True if the interval of the mean has a share from 85% to 90%."""
    low, high = bootstrap_interval(draws)
    return bool(high >= 0.85 and low <= 0.9)


def _rounded(numbers: Iterable[float], digits: int = 3) -> list[float]:
    return [round(number, digits) for number in numbers]


def _rivals(run: Run) -> list[str]:
    """Return the policies of the other schemes under a reading of FFD."""
    return [*(name + run.choice(OPEN["HEAD"]) for name in FFD), "fcfs"]


def _lowest_delay(rival: str) -> None:
    """Register the claim that BF-EXEC's delay is shorter than a rival's at every number of servers."""

    @claim(f"figure-3-{rival}")
    def _check(run: Run, say: Sentences) -> Finding:
        played = sweep_policies(run, COMPARED)
        found = _compare(played, rival + (run.choice(OPEN["HEAD"]) if rival in FFD else ""), "mean_delay")
        own = _means(played, "bf-exec", "mean_delay", 1)
        figures = {**found._asdict(), "bf_exec": own}
        return say(_in_all(found.more), figures, found=found, clear=sum(found.more), of=len(own))


for _rival in (*FFD, "fcfs"):
    _lowest_delay(_rival)


@claim("more-servers")
def _check_more_servers(run: Run) -> Finding:
    played = sweep_policies(run, COMPARED)
    servers = _servers(played)
    found = [grows(name, _by_servers(played, name, "mean_delay"), falls=True) for name in COMPARED]
    said = judge_claim("", found, what=f"from {servers[0]} to {servers[-1]} servers")
    figures = {entry.name: _rounded([entry.value, entry.low, entry.high]) for entry in found}
    means = {name: _means(played, name, "mean_delay", 1) for name in COMPARED}
    return Finding(Verdict(said.verdict), said.measured, figures=figures | {"means": means})


@claim("execution-times")
def _check_execution_times(run: Run, say: Sentences) -> Finding:
    rivals = ("bfd-nb", "bfd-dp", "bfd-product")
    played = sweep_policies(run, ("bf-exec", *rivals))
    found = {rival: _compare(played, rival, "mean_delay") for rival in rivals}
    cases = [more for each in found.values() for more in each.more]
    relative = {name: _rounded(each.relative) for name, each in found.items()}
    least, most = (pick(map(pick, relative.values())) for pick in (min, max))
    figures = {"relative": relative, "clear": sum(cases)}
    return say(_in_all(cases), figures, least=least, most=most, settings=len(cases))


@claim("figure-2-order")
def _check_highest_utilisation(run: Run, say: Sentences) -> Finding:
    played, window = sweep_policies(run, COMPARED), run.choice(OPEN["WINDOW"])
    rivals = _rivals(run)
    found = {
        rival: [_compare(played, rival, f"utilization_{resource}{window}") for resource in RESOURCES]
        for rival in rivals
    }
    more = {rival: sum(sum(one.less) for one in own) for rival, own in found.items()}
    less = {rival: sum(sum(one.more) for one in own) for rival, own in found.items()}
    cases = [case for own in found.values() for one in own for case in one.less]
    cpu = _means(played, "bf-exec", f"utilization_cpu{window}", 3)
    figures = {"cpu": cpu, "more": more, "less": less, "settings": len(cases) // len(rivals)}
    used = ", ".join(f"{share:.0%}" for share in cpu)
    told = ", ".join(f"{rival.upper()} in {more[rival]} ({less[rival]})" for rival in rivals)
    return say(_in_all(cases), figures, used=used, told=told)


@claim("figure-2-levels")
def _check_levels(run: Run, say: Sentences) -> Finding:
    played, window = sweep_policies(run, COMPARED), run.choice(OPEN["WINDOW"])
    draws = {name: _by_servers(played, "bf-exec", f"utilization_{name}{window}") for name in RESOURCES}
    levels = {name: _rounded(map(np.mean, own)) for name, own in draws.items()}
    stated = {name: list(map(_as_stated, own)) for name, own in draws.items()}
    ends = {name: [100.0 * end(own, key=np.mean) for end in (min, max)] for name, own in draws.items()}
    spans = ", ".join(
        f"{name} {tell_mean(least, unit='%')} to {tell_mean(most, unit='%')}"
        for name, (least, most) in ends.items()
    )
    cases = [*stated["cpu"], *stated["memory"]]
    figures = {"levels": levels, "stated": stated}
    return say(_in_all(cases), figures, spans=spans, true=sum(cases), settings=len(cases))


@claim("figure-2-fcfs")
def _check_utilisation_fcfs(run: Run, say: Sentences) -> Finding:
    played, window = sweep_policies(run, COMPARED), run.choice(OPEN["WINDOW"])
    found = {name: _compare(played, "fcfs", f"utilization_{name}{window}") for name in RESOURCES}
    cases = [less for each in found.values() for less in each.less]
    figures = {name: each._asdict() for name, each in found.items()}
    return say(_in_all(cases), figures, found=found["cpu"], clear=sum(cases), settings=len(cases))


def _more_used_and_later(instance: Instance, rival: str, play: Play = simulate) -> Details:
    """Return delays and utilisations if a rival uses more of the cpu than BF-EXEC, and delays are longer."""
    schedules = [play(instance, name) for name in ("bf-exec", rival)]
    delays = [total_delay(instance, one.start) for one in schedules]
    if delays[0] >= delays[1]:
        return None
    shares = [utilisation(instance, one, 0, "_backlog") for one in schedules]
    if shares[0] >= shares[1]:
        return None
    return {"rival": rival, "delay": delays, "utilisation": [str(share) for share in shares]}


def _confirm_utilisation(shown: Shown) -> bool:
    return in_environment(lambda instance, play: _more_used_and_later(instance, shown["rival"], play))(shown)


@claim("utilisation-is-not-delay", confirm=_confirm_utilisation)
def _check_utilisation_delay(run: Run, say: Sentences) -> Finding:
    rival = f"ffd-nb{run.choice(OPEN['HEAD'])}"
    played = sweep_policies(run, COMPARED)
    searched = find_flaw(instances(3, 2, 1, 1, 2), lambda instance: _more_used_and_later(instance, rival))
    delay = _compare(played, rival, "mean_delay")
    used = _compare(played, rival, "utilization_cpu_to_last_arrival")
    both = sum(map(operator.and_, delay.more, used.more))
    figures = {"checked": searched.checked, "flawed": searched.flawed, "both": both}
    verdict = judge(searched.found is not None)
    return say(verdict, figures, witness=searched.found, rival=rival.upper(), of=len(used.low), used=used)


@claim("outperforms")
def _check_outperforms(run: Run, say: Sentences) -> Finding:
    played, rivals = sweep_policies(run, COMPARED), _rivals(run)
    worse = {"delay": [more for rival in rivals for more in _compare(played, rival, "mean_delay").more]}
    for name in RESOURCES:
        metric = f"utilization_{name}{run.choice(OPEN['WINDOW'])}"
        worse[name] = [less for rival in rivals for less in _compare(played, rival, metric).less]
    cases = list(itertools.chain.from_iterable(worse.values()))
    figures = {"clear": sum(cases), "settings": len(cases)}
    told: dict[str, Any] = {name: f"{sum(own)} of {len(own)}" for name, own in worse.items()}
    return say(_in_all(cases), figures, rivals=", ".join(map(str.upper, rivals)), **told)


@claim("fcfs-in-order")
def _check_fcfs(run: Run, say: Sentences) -> Finding:
    def in_order(instance: Instance) -> bool:
        begins = [start for start in simulate(instance, "fcfs").start if start is not None]
        return len(begins) == len(instance.tasks) and begins == sorted(begins)

    drawn = (draw(run.rng) for _ in range(2_000 if run.small else 10_000))
    return say.counted(count(drawn, in_order), "overtaken")
