"""``schedgym list`` and ``schedgym describe``: show environments and policies."""

import inspect
from typing import Any

from rich.text import Text

from schedgym.cli.common import command
from schedgym.core.problem import Problem, get_problem, list_problems
from schedgym.errors import UnknownName
from schedgym.evaluation.wording import (
    describe_range,
    describe_space,
    make_console,
    make_table,
    options_text,
    value_text,
)


@command("list")
def list_all(*, problem: str | None = None) -> None:
    """List the environment ids and the policies.

    Options:
        problem: List only this problem.
    """
    from schedgym.core.policy import list_policies

    console = make_console()
    for found in [get_problem(problem)] if problem is not None else list_problems().values():
        rows = [(id, found.name, variant.title) for id, variant in found.ids.items()]
        console.print(make_table("", ("id", "problem", "title"), rows))
        default = {policy for variant in found.ids.values() for policy in variant.policies}
        rows = [
            (spec.name + ("*" if spec.name.partition("/")[2] in default else ""), spec.source, spec.help)
            for spec in list_policies(found.name)
        ]
        headings = ("policy", "source", "what it does")
        console.print(make_table("", headings, rows, policy={"no_wrap": True}))
        console.print("* run by `schedgym compare` unless --policies says otherwise")
        if len(found.ids) > 1:
            for id, variant in found.ids.items():
                console.print(f"  {id}: {', '.join(variant.policies)}", soft_wrap=True)


@command("describe")
def describe(name: str) -> None:
    """Describe an environment or a policy.

    Of an environment: its spaces, views, parameters and metrics. Of a policy: its source and options.

    Options:
        name: An environment id, a problem or a policy.
    """
    from schedgym.core.policy import list_policies
    from schedgym.evaluation.plan import find_id

    known = {name for p in list_problems().values() for name in (p.name, *p.ids)}
    name = find_id(name)
    if name in known:
        problem = get_problem(name)
        for id in [name] if name in problem.ids else problem.ids:
            _describe_id(problem, id)
        return
    specs = list_policies()
    found = [spec for spec in specs if name in (spec.name, spec.name.partition("/")[2])]
    if not found:
        short = [spec.name.partition("/")[2] for spec in specs]
        names = [*known, *(short if "/" not in name else [spec.name for spec in specs])]
        raise UnknownName("environment id, problem or policy", name, names)
    for spec in found:
        _describe_policy(spec)


def _values(items: Any) -> str:
    return ", ".join(f"{name}={value_text(value)}" for name, value in items.items())


def _describe_id(problem: Problem, id: str) -> None:
    import gymnasium

    variant = problem.ids[id]
    console = make_console()
    console.print(Text.assemble((id, "bold"), f"  {variant.title}"))
    console.print(f"Source: {problem.source}")
    env = gymnasium.make(id, disable_env_checker=True).unwrapped
    default = getattr(env, "interface").view  # noqa: B009
    console.print(Text.assemble(("\nSpaces", "bold"), f" (view {default!r}, default parameters)"))
    console.print(f"action: {describe_space(env.action_space)}")
    for key, space in getattr(env.observation_space, "spaces", {"": env.observation_space}).items():
        console.print(f"observation {key}: {describe_space(space)}")
    rows: list[tuple[str, ...]] = []
    for view in problem.views:
        env = gymnasium.make(id, disable_env_checker=True, view=view.name).unwrapped
        rows.append((view.name, view.help, describe_space(env.action_space)))
    headings = ("view", "actions", "action space with default sizes")
    console.print(make_table("Views (the first is of full fidelity)", headings, rows))
    kinds = problem.parameters.kinds()
    rows = []
    for key, field in problem.parameters.__dataclass_fields__.items():
        value = value_text(variant.parameters.get(key, field.default))
        rows.append((key, value, describe_range(kinds[key], field.metadata), field.metadata.get("help", "")))
    title = "Parameters (--name value, or --set name=value)"
    console.print(make_table(title, ("parameter", "default", "range", "meaning"), rows))
    console.print(f"`compare` and `run` set {_values(variant.baseline_parameters)} unless told otherwise.")
    console.print("A policy that cannot act in that view acts in the first of its own.")
    better = {"min": "less", "max": "more"}
    rows = [(m.name, m.unit, better.get(m.better, ""), m.help) for m in problem.metrics]
    title = f"Metrics (objective: {problem.objective_of(problem.build(id))})"
    console.print(make_table(title, ("metric", "unit", "better", "meaning"), rows))
    rows = [(key, _values(values)) for key, values in problem.presets.items()]
    console.print(make_table("Presets (--preset name)", ("preset", "parameters"), rows))
    console.print(f"Policies of a comparison: {', '.join(variant.policies)}; reference {variant.reference}")


def _describe_policy(spec: Any) -> None:
    console = make_console()
    console.print(spec.name, style="bold")
    text = inspect.getdoc(spec.factory) or ""
    console.print(text.replace("$", ""))  # dollars mark formulas, which the site typesets
    console.print(f"\nSource: {spec.source}")
    console.print(f"Deviations: {spec.deviations or 'none'}")
    console.print(f"Knows beyond sizes and clock: {', '.join(spec.knows) or 'nothing'}")
    console.print(f"Views: {', '.join(spec.views) or 'see its documentation'}")
    console.print(f"Options (--option): {_values(spec.options()) or 'none'}")
    if candidates := spec.open_options():
        text = "; ".join(
            f"{name}={'|'.join(options_text({name: value}).partition('=')[2] for value in values)}"
            for name, values in candidates.items()
        )
        console.print(f"Candidates (schedgym tune): {text}")
    if spec.fixed:
        console.print(f"Fixed by the name: {_values(spec.fixed)}")
