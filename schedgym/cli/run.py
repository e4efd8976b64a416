"""``schedgym run``: schedule one workload by one policy."""

from pathlib import Path
from typing import Annotated, Any

import typer

from schedgym.cli.common import (
    Id,
    Json,
    Seed,
    Settings,
    application,
    check_output,
    make_table,
    pairs,
    policy_options,
    say,
    write_json,
)
from schedgym.errors import InvalidParameter
from schedgym.evaluation.wording import four_digits, make_console

__all__ = ["run"]


@application.command("run")
def run(
    id: Id,
    policy: Annotated[str, typer.Option("--policy", help="The name of the policy.")],
    workload: Annotated[
        Path, typer.Option("--workload", metavar="FILE", help="The workload file (.json or .npz).")
    ],
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", metavar="NAME=VALUE", help="Set an option of the policy; may be given repeatedly."
        ),
    ] = None,
    settings: Settings = None,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Schedule one workload by one policy, and print the metrics.

    With --json, the file also has the outcome of every job.
    """
    from schedgym.core.policy import make_policy, resolve_policy_name
    from schedgym.core.workload_files import load_workload
    from schedgym.evaluation import runner
    from schedgym.evaluation.manifest import make_manifest

    problem, id = runner.resolve_id(id)
    check_output(json)
    full = resolve_policy_name(policy, problem.name)
    acting = make_policy(full, **policy_options(full, problem, pairs(option, "--option")))
    texts = pairs(settings, "--set")
    if "workload" in texts:
        raise InvalidParameter("--set: the workload is given by --workload")
    parameters = {key: problem.parameters.parse(key, text) for key, text in texts.items()}
    if seed < 0:
        raise InvalidParameter(f"seed: must be a whole number from 0, got {seed}")
    instance = load_workload(workload, problem.schema)
    parameters["workload"] = str(workload)
    parameters = runner.acting_parameters(problem, id, parameters, full)
    env = runner.make_env(id, parameters)
    label = full.removeprefix(f"{problem.name}/")
    outcome = runner.play(env, acting, seed=seed, label=label)
    record = env.record()
    judge = problem.module("metrics")
    judge.validate(record)
    metrics: dict[str, Any] = dict(outcome.metrics)
    rows = [(m.name, four_digits(metrics[m.name]), m.unit, m.help) for m in problem.metrics]
    objective = problem.metric(problem.objective_of(env.simulator.parameters))
    bound = runner.lower_bound(problem, instance, env.simulator.parameters)
    if bound is not None:
        runner.check_bound(objective, instance, bound, metrics[objective.name], label)
        metrics["bound"] = bound
        meaning = f"no scheduler has a better {objective.name}"
        rows.append(("bound", four_digits(bound), objective.unit, meaning))
    headings = ("metric", "value", "unit", "meaning")
    title = f"{label} on {workload.name}"
    console = make_console()
    console.print(make_table(title, headings, rows, value={"justify": "right"}))
    if outcome.truncated:
        console.print("the episode ended with work left")
    if json is not None:
        content = {
            "problem": problem.name,
            "id": id,
            "policy": full,
            "metrics": metrics,
            "jobs": judge.fates(record),
            "manifest": make_manifest(seeds=[seed], parameters=parameters),
        }
        write_json(content, json)
        say(f"wrote {json}")
