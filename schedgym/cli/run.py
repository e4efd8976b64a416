"""``schedgym run``: schedule one workload by one policy."""

# annotations are evaluated: typer reads them
import dataclasses
from pathlib import Path
from typing import Any

from schedgym.cli.common import (
    command,
    named_policies,
    pairs,
    policy_options,
    say,
    write_json,
)
from schedgym.core.files import check_output
from schedgym.core.problem import Problem
from schedgym.errors import InvalidParameter
from schedgym.evaluation.wording import four_digits, make_console, make_table


@dataclasses.dataclass(frozen=True)
class RunAsked:
    """The arguments of ``schedgym run``.

    Attributes:
        policy: Its name, 'pretrained' (the shipped agent), 'search:pretrained', an agent file (.npz),
            'score: EXPRESSION', or FILE.py:NAME.
        workload: The workload file (.json or .npz). Default: one drawn from the seed.
        option (NAME=VALUE): Set an option of the policy; may be given repeatedly.
        gantt: Draw who ran where and when into this file (.png, .svg, .pdf).
        gif: Record the episode into this file (.gif, .mp4).
    """

    id: str
    _: dataclasses.KW_ONLY
    policy: str
    workload: Path | None = None
    option: list[str] | None = None
    set: list[str] | None = None
    seed: int = 0
    json: Path | None = None
    gantt: Path | None = None
    gif: Path | None = None


@command("run", RunAsked)
def run(asked: RunAsked) -> None:
    """Schedule one workload by one policy, and print the metrics.

    With --json, the file also has the outcome of every job.
    """
    from schedgym.core.policy import make_policy, resolve_policy_name
    from schedgym.envs import SchedulingEnv
    from schedgym.evaluation.canvas import FORMATS, save_figure
    from schedgym.evaluation.gantt import plot_schedule
    from schedgym.evaluation.manifest import make_manifest
    from schedgym.evaluation.plan import acting_parameters, resolve_id
    from schedgym.evaluation.recording import MOVING, record_episode
    from schedgym.evaluation.runner import compare

    problem, id = resolve_id(asked.id)
    check_output(asked.gantt, FORMATS)
    check_output(asked.gif, MOVING)
    acting, *others = named_policies(asked.policy, problem, id)
    if others:
        raise InvalidParameter(f"--policy: must be one, got {asked.policy!r}: compare runs several")
    options = pairs(asked.option, "--option")
    if isinstance(acting, str):
        full = resolve_policy_name(acting, problem.name)
        acting = make_policy(full, **policy_options(full, problem, options))
    elif options:
        raise InvalidParameter(f"--option: {acting.name} is an agent, which has no options")
    else:
        full = acting.name
    given = _parameters(asked, problem)
    label = full.removeprefix(f"{problem.name}/")
    evaluation = compare(
        id, {label: acting}, episodes=1, seed=asked.seed, observe=SchedulingEnv.record, parameters=given
    )
    record, objective = evaluation.observed[0].values, evaluation.objective
    metrics: dict[str, Any] = dict(zip(evaluation.frame["metric"], evaluation.frame["value"], strict=True))
    truncated, _ = metrics.pop("truncated"), metrics.pop("gap", None)
    if asked.json is not None:
        content = {
            "problem": problem.name,
            "id": id,
            "policy": full,
            "truncated": bool(truncated),
            "metrics": metrics,
            "jobs": problem.module("metrics").fates(record),
            "manifest": make_manifest(
                seeds=[asked.seed], parameters=acting_parameters(problem, id, given, acting)
            ),
        }
        write_json(content, asked.json)
    if asked.gantt is not None:
        save_figure(plot_schedule(record, policy=label), asked.gantt)
    if asked.gif is not None:
        record_episode(id, acting, asked.gif, seed=asked.seed, parameters=given)
    measured = [problem.metric(name) for name in metrics if name != "bound"]
    rows = [(m.name, four_digits(metrics[m.name]), m.unit, m.help) for m in measured]
    if "bound" in metrics:
        meaning = f"no scheduler has a better {objective.name}"
        rows.append(("bound", four_digits(metrics["bound"]), objective.unit, meaning))
    headings = ("metric", "value", "unit", "meaning")
    where = f"seed {asked.seed}" if asked.workload is None else asked.workload.name
    console = make_console()
    console.print(make_table(f"{label} on {where}", headings, rows, value={"justify": "right"}))
    if truncated:
        console.print("the episode ended with work left")
    if written := [str(path) for path in (asked.json, asked.gantt, asked.gif) if path is not None]:
        say(f"wrote {', '.join(written)}")


def _parameters(asked: RunAsked, problem: Problem) -> dict[str, Any]:
    """The environment's parameters that are given, the workload's file among them."""
    from schedgym.core.workload_files import load_workload

    texts = pairs(asked.set, "--set")
    if "workload" in texts:
        raise InvalidParameter("--set: the workload is given by --workload")
    parameters = {key: problem.parameters.parse(key, text) for key, text in texts.items()}
    if asked.workload is not None:
        load_workload(asked.workload, problem.schema)  # refuses it before anything is made
        parameters["workload"] = str(asked.workload)
    return parameters
