"""Section VI: the experiments.

The paper leaves open whether the front of FFD's queue blocks, and over which time the utilisation is taken
(:mod:`~schedgym.papers.noroozoliaee2014.readings`).
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.evaluation.statistics import bootstrap_interval
from schedgym.papers import Evaluation, Finding, Run, Shown, Verdict, judge
from schedgym.papers.judging import grows, judge_claim, verdict_of
from schedgym.papers.noroozoliaee2014.instances import (
    claim,
    draw,
    find_flaw,
    instances,
    read_instance,
    total_delay,
)
from schedgym.papers.noroozoliaee2014.model import Instance, simulate, utilisation
from schedgym.papers.noroozoliaee2014.readings import HEAD, WINDOW
from schedgym.papers.noroozoliaee2014.runs import play_instance, sweep_policies
from schedgym.papers.searches import Searched, count

FFD = ("ffd-nb", "ffd-dp")
COMPARED = ("bf-exec", *(name + end for end in HEAD.choices.values() for name in FFD), "fcfs")
RESOURCES = ("cpu", "memory")


class _Compared(NamedTuple):
    """Means of a rival relative to those of a reference, by number of servers."""

    servers: list[int]
    relative: list[float]
    low: list[float]
    high: list[float]

    def shown(self) -> str:
        """Write the percentages with their intervals."""
        rows = zip(self.servers, self.relative, self.low, self.high, strict=True)
        return ", ".join(f"{n}: {r:+.0%} [{low:+.0%}, {high:+.0%}]" for n, r, low, high in rows)


def _compare(played: Evaluation, reference: str, rival: str, metric: str) -> _Compared:
    pair = played.select(lambda _, policy: policy in (reference, rival))
    own = pair.differences(reference, metric)
    names = ("servers", "relative", "relative_low", "relative_high")
    return _Compared(*(own[name].tolist() for name in names))


def _means(played: Evaluation, policy: str, metric: str) -> list[float]:
    frame = played.frame
    own = frame[(frame["policy"] == policy) & (frame["metric"] == metric)]
    return [float(mean) for mean in own.groupby("servers")["value"].mean()]


def _servers(played: Evaluation) -> list[int]:
    """Return the numbers of servers in ascending order."""
    return sorted({entry.setting["servers"] for entry in played.observed})


def _by_servers(played: Evaluation, policy: str, metric: str) -> list[npt.NDArray[np.float64]]:
    """Return a metric of each draw, by number of servers."""
    return [played.metric(policy, metric, servers=n) for n in _servers(played)]


def _share(draws: npt.NDArray[np.float64]) -> str:
    """Write the mean of the draws' shares in percent, with its interval."""
    low, high = bootstrap_interval(draws)
    return f"{draws.mean():.0%} ({100 * low:.0f} to {100 * high:.0f})"


def _rounded(numbers: Iterable[float], digits: int = 3) -> list[float]:
    return [round(number, digits) for number in numbers]


def _rivals(run: Run) -> list[str]:
    """Return the policies of the other schemes under a reading of FFD."""
    return [*(name + run.choice(HEAD) for name in FFD), "fcfs"]


def _lowest_delay(rival: str) -> None:
    """Register the claim that BF-EXEC's delay is shorter than a rival's at every number of servers."""
    of_ffd = rival in FFD

    @claim(f"figure-3-{rival}")
    def _check(run: Run) -> Finding:
        played = sweep_policies(run, COMPARED)
        found = _compare(played, "bf-exec", rival + (run.choice(HEAD) if of_ffd else ""), "mean_delay")
        clear = sum(low > 0 for low in found.low)
        text = f"{rival.upper()}'s delay against BF-EXEC's at {found.shown()}, significantly longer at"
        text += f" {clear} of {len(found.low)}"
        own = _rounded(_means(played, "bf-exec", "mean_delay"), 1)
        verdict = verdict_of(judge(low > 0) for low in found.low)
        return Finding(verdict, text, figures={**found._asdict(), "bf_exec": own})


for _rival in (*FFD, "fcfs"):
    _lowest_delay(_rival)


@claim("more-servers")
def _check_more_servers(run: Run) -> Finding:
    played = sweep_policies(run, COMPARED)
    servers = _servers(played)
    found = [grows(name, _by_servers(played, name, "mean_delay"), falls=True) for name in COMPARED]
    said = judge_claim("", found, what=f"from {servers[0]} to {servers[-1]} servers")
    figures = {entry.name: _rounded([entry.value, entry.low, entry.high]) for entry in found}
    means = {name: _rounded(_means(played, name, "mean_delay"), 1) for name in COMPARED}
    return Finding(Verdict(said.verdict), said.measured, figures=figures | {"means": means})


@claim("execution-times")
def _check_execution_times(run: Run) -> Finding:
    rivals = ("bfd-nb", "bfd-dp", "bfd-product")
    played = sweep_policies(run, ("bf-exec", *rivals))
    found = {rival: _compare(played, "bf-exec", rival, "mean_delay") for rival in rivals}
    clear = [low > 0 for each in found.values() for low in each.low]
    relative = {name: _rounded(each.relative) for name, each in found.items()}
    least, most = (pick(map(pick, relative.values())) for pick in (min, max))
    text = (
        f"with the same first phase, and the queue by decreasing size, delays are {least:+.0%} to "
        f"{most:+.0%}, significantly longer in {sum(clear)} of {len(clear)} settings"
    )
    return Finding(verdict_of(map(judge, clear)), text, figures={"relative": relative, "clear": sum(clear)})


@claim("figure-2-order")
def _check_highest_utilisation(run: Run) -> Finding:
    played, window = sweep_policies(run, COMPARED), run.choice(WINDOW)
    rivals = _rivals(run)
    more, less = dict.fromkeys(rivals, 0), dict.fromkeys(rivals, 0)
    cases: list[bool] = []
    for resource in RESOURCES:
        for rival in rivals:
            found = _compare(played, "bf-exec", rival, f"utilization_{resource}{window}")
            cases += (high < 0 for high in found.high)
            more[rival] += sum(high < 0 for high in found.high)
            less[rival] += sum(low > 0 for low in found.low)
    settings = len(cases) // len(rivals)
    cpu = _rounded(_means(played, "bf-exec", f"utilization_cpu{window}"))
    text = f"BF-EXEC's cpu {', '.join(f'{share:.0%}' for share in cpu)}; significantly more (less), of"
    text += f" {settings} settings, than "
    text += ", ".join(f"{rival.upper()} in {more[rival]} ({less[rival]})" for rival in rivals)
    figures = {"cpu": cpu, "more": more, "less": less, "settings": settings}
    return Finding(verdict_of(map(judge, cases)), text, figures=figures)


@claim("figure-2-levels")
def _check_levels(run: Run) -> Finding:
    played, window = sweep_policies(run, COMPARED), run.choice(WINDOW)
    draws = {name: _by_servers(played, "bf-exec", f"utilization_{name}{window}") for name in RESOURCES}
    levels = {name: _rounded(map(np.mean, own)) for name, own in draws.items()}
    stated = {name: [bool(0.845 <= share < 0.905) for share in own] for name, own in levels.items()}
    spans = (
        f"{name} {_share(min(own, key=np.mean))} to {_share(max(own, key=np.mean))}"
        for name, own in draws.items()
    )
    cases = [*stated["cpu"], *stated["memory"]]
    text = f"{', '.join(spans)}; as stated in {sum(cases)} of {len(cases)} settings"
    return Finding(verdict_of(map(judge, cases)), text, figures={"levels": levels, "stated": stated})


@claim("figure-2-fcfs")
def _check_utilisation_fcfs(run: Run) -> Finding:
    played, window = sweep_policies(run, COMPARED), run.choice(WINDOW)
    found = [_compare(played, "bf-exec", "fcfs", f"utilization_{name}{window}") for name in RESOURCES]
    clear = [high < 0 for each in found for high in each.high]
    text = (
        f"FCFS's cpu against BF-EXEC's at {found[0].shown()}; significantly less in {sum(clear)} of "
        f"{len(clear)} settings"
    )
    figures = {"cpu": found[0]._asdict(), "memory": found[1]._asdict()}
    return Finding(verdict_of(map(judge, clear)), text, figures=figures)


def _confirm_utilisation(shown: Shown) -> bool:
    """Compare with the environment's metrics of both registered policies."""
    instance = read_instance(shown)
    delays, shares = [], []
    for name in ("bf-exec", shown["rival"]):
        measured = play_instance(instance, name).metrics
        delays.append(round(len(instance.tasks) * measured["mean_delay"]))
        shares.append(measured["utilization_cpu_backlog"])
    stated = [float(Fraction(share)) for share in shown["utilisation"]]
    return (
        delays == shown["delay"]
        and np.allclose(shares, stated, rtol=0, atol=1e-9)
        and delays[0] < delays[1]
        and stated[0] < stated[1]
    )


def _more_used_and_later(rival: str) -> Searched:
    """Search for instances in which a rival uses more of the cpu than BF-EXEC, and delays tasks longer."""

    def flaw(instance: Instance) -> dict[str, Any] | None:
        schedules = [simulate(instance, name) for name in ("bf-exec", rival)]
        delays = [total_delay(instance, one.start) for one in schedules]
        if delays[0] >= delays[1]:
            return None
        shares = [utilisation(instance, one, 0, "_backlog") for one in schedules]
        if shares[0] >= shares[1]:
            return None
        return {"rival": rival, "delay": delays, "utilisation": [str(share) for share in shares]}

    return find_flaw(instances(3, 2, 1, 1, 2), flaw)


@claim("utilisation-is-not-delay", confirm=_confirm_utilisation)
def _check_utilisation_delay(run: Run) -> Finding:
    rival = f"ffd-nb{run.choice(HEAD)}"
    played = sweep_policies(run, COMPARED)
    searched = _more_used_and_later(rival)
    delay = _compare(played, "bf-exec", rival, "mean_delay")
    used = _compare(played, "bf-exec", rival, "utilization_cpu_to_last_arrival")
    both = sum(d > 0 and u > 0 for d, u in zip(delay.low, used.low, strict=True))
    text = f"{rival.upper()} uses more of the cpu while tasks wait than BF-EXEC, and has a longer delay, in"
    text += f" {searched.flawed} of {searched.checked:,} tiny instances; in the runs, to the last arrival,"
    text += f" at {both} of {len(used.low)} numbers of servers: {used.shown()}"
    figures = {"checked": searched.checked, "flawed": searched.flawed, "both": both}
    return Finding(judge(searched.found is not None), text, witness=searched.found, figures=figures)


@claim("outperforms")
def _check_outperforms(run: Run) -> Finding:
    played, rivals = sweep_policies(run, COMPARED), _rivals(run)
    metrics = {"mean_delay": "longer delays"}
    metrics |= {f"utilization_{name}{run.choice(WINDOW)}": f"less {name} in use" for name in RESOURCES}
    cases: list[bool] = []
    texts = []
    for metric, words in metrics.items():
        behind = []
        for rival in rivals:
            found = _compare(played, "bf-exec", rival, metric)
            delayed, idle = [low > 0 for low in found.low], [high < 0 for high in found.high]
            behind += delayed if metric == "mean_delay" else idle
        cases += behind
        texts.append(f"{words} in {sum(behind)} of {len(behind)} settings")
    text = f"{', '.join(map(str.upper, rivals))} have, significantly, {', '.join(texts)}"
    return Finding(verdict_of(map(judge, cases)), text, figures={"clear": sum(cases), "settings": len(cases)})


@claim("fcfs-in-order")
def _check_fcfs(run: Run) -> Finding:
    def in_order(instance: Instance) -> bool:
        begins = [start for start in simulate(instance, "fcfs").start if start is not None]
        return len(begins) == len(instance.tasks) and begins == sorted(begins)

    drawn = (draw(run.rng) for _ in range(2_000 if run.small else 10_000))
    checked, _, overtaken = count(drawn, in_order)
    text = f"starts are in order of submission in {checked - overtaken:,} of {checked:,} instances"
    return Finding(judge(not overtaken), text, figures={"checked": checked, "overtaken": overtaken})
