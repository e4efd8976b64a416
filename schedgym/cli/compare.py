"""``schedgym compare``: run policies on the same workloads; the result is a table, a picture and files."""

# annotations are evaluated: typer reads them
import dataclasses
import json
import math
import re
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedgym.cli.common import command, named_policies, pairs, policy_options, say, write_json
from schedgym.cli.parameters import command_of, parameter_options, parse_parameters
from schedgym.core.files import atomic_write, check_output
from schedgym.core.problem import Problem
from schedgym.errors import InvalidParameter, UnknownName
from schedgym.evaluation.statistics import FEW
from schedgym.evaluation.wording import (
    four_digits,
    has_width,
    interval_text,
    make_console,
    make_table,
    metric_text,
    options_text,
    percent_text,
    value_text,
)
from schedgym.extras import require

if TYPE_CHECKING:
    from schedgym.evaluation.comparison import Difference, Evaluation
    from schedgym.evaluation.plan import Policies


@dataclasses.dataclass(frozen=True)
class Contenders:
    """The arguments that say which policies play which episodes.

    Attributes:
        policies (A,B): Names ('pretrained' is the agent shipped for the id, 'search:pretrained' one that
            searches), agent files (.npz), 'score: EXPRESSION', or FILE.py:NAME, which runs the file. Default:
            those listed for the id.
        agents (A,B): Agent files to run, or folders of them; 'pretrained' is the one shipped for the id.
        episodes: Episodes per policy. Default: 20, or all windows of a trace.
        option (POLICY.NAME=VALUE): Set an option of a policy; may be given repeatedly.
        tuned ([FILE]): Give policies the options that `schedgym tune` found: those shipped, or those of a
            file.
    """

    id: str
    _: dataclasses.KW_ONLY
    policies: str | None = None
    agents: str | None = None
    episodes: int | None = None
    seed: int = 0
    preset: str | None = None
    set: list[str] | None = None
    option: list[str] | None = None
    tuned: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Asked(Contenders):
    """The arguments of ``schedgym compare``, except for the problem's parameters.

    Attributes:
        best_known (BUDGET): Add the best schedule that an offline search finds in each episode, which knows
            all of it; e.g. 5000 (schedules that it tries) or 20s (CPU time), for each episode.
        csv: Write the values of all episodes to this CSV file.
        plot: Write the picture to this file (.png, .svg, .pdf); 'none' draws no picture.
        width (LENGTH): Width of the picture, e.g. 3.5in or 88mm.
        title: Write the problem and the settings above the picture.
        format (KIND): Kind of the picture's file: png, svg or pdf.
        reference: The policy that the others are compared with. Default: that of the id.
    """

    best_known: str | None = None
    n_jobs: int = 1
    json: Path | None = None
    csv: Path | None = None
    plot: Path = Path("compare.png")
    width: str = "11.5in"
    title: bool = True
    format: str | None = None
    reference: str | None = None

    @property
    def picture(self) -> Path | None:
        """The file of the picture, if one is drawn."""
        if str(self.plot).lower() == "none":
            return None
        return self.plot if self.format is None else self.plot.with_suffix(f".{self.format.lower()}")

    @property
    def inches(self) -> float:
        """The width of the picture."""
        found = re.fullmatch(r"(\d+\.?\d*) *(in|cm|mm)", self.width.strip())
        if found is None:
            raise InvalidParameter(
                f"--width: must be a length such as 3.5in, 9cm or 88mm, got {self.width!r}"
            )
        inches = float(found[1]) / {"in": 1.0, "cm": 2.54, "mm": 25.4}[found[2]]
        if not 2.5 <= inches <= 40:
            raise InvalidParameter(f"--width: must be from 2.5in to 40in, got {self.width!r}")
        return inches


@command("compare", Asked, cls=command_of(Asked), more=parameter_options(Asked))
def compare(asked: Asked, **given: str | None) -> None:
    """Run policies on the same workloads and compare them.

    Every parameter of the problem is an option: `schedgym compare ID --help` lists those of an environment.
    With a comma list of values each value is run, with several lists all combinations; the first list is the
    x axis of the picture. A boolean parameter without a value is set to true, by --no-NAME to false.
    """
    began = time.monotonic()
    picture = asked.picture
    inches = asked.inches  # refuses what is no length
    for module in ("pandas", *(("matplotlib",) if picture is not None else ())):
        require(module)
    from schedgym.evaluation import runner
    from schedgym.evaluation.canvas import FORMATS
    from schedgym.evaluation.export import write_csv
    from schedgym.evaluation.plot import plot_comparison

    wanted = _plan(asked, given)
    check_output(picture, FORMATS)
    evaluation = runner.compare(
        wanted.id,
        {**wanted.acting, **wanted.searching},
        wanted.grid,
        asked.episodes,
        asked.seed,
        parameters=wanted.fixed,
        n_jobs=asked.n_jobs,
    )
    if wanted.searching:
        from schedgym.evaluation.best_known import take_best

        evaluation = take_best(evaluation)
    context = _context(wanted, evaluation)
    seconds = time.monotonic() - began
    if picture is not None:
        title = None if asked.title else ""
        plot_comparison(
            evaluation, picture, reference=wanted.reference, title=title, subtitle=context, width=inches
        )
    if asked.csv is not None:
        with atomic_write(asked.csv) as stream:
            write_csv(stream, [evaluation.frame])
    if asked.json is not None:
        write_json(_report(wanted, evaluation), asked.json)
    _print_comparison(evaluation, wanted.reference, f"{context} · {seconds:.1f} s")
    _print_machines(wanted)
    _print_trainings(wanted, evaluation)
    if asked.tuned is not None:
        _print_tuned(wanted, evaluation)
    _print_searching(wanted, evaluation)
    _print_statements(evaluation)
    if written := [str(path) for path in (picture, asked.csv, asked.json) if path is not None]:
        say(f"wrote {', '.join(written)}")


# what is run ---------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Plan:
    """Policies and their settings, which have been checked.

    Attributes:
        problem, id: problem and id of the environment.
        fixed: parameters with one value, those of the preset included.
        grid: parameters with several values.
        policies: the policies that are named, agents among them.
        agents: label -> an agent's policy, wherever it is named.
        reference: label that differences of a comparison refer to.
        searching: label -> the search for the best known schedules, where it is asked for: no policy.
    """

    problem: Problem
    id: str
    fixed: dict[str, Any]
    grid: dict[str, list[Any]]
    policies: "Policies"
    agents: dict[str, Any]
    reference: str = ""
    searching: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def acting(self) -> dict[str, Any]:
        """Label -> policy, for all of them."""
        return {**self.policies.acting, **self.agents}

    @property
    def base(self) -> dict[str, Any]:
        """The environment's parameters that do not vary, including those of the id."""
        variant = self.problem.ids[self.id]
        return {**variant.parameters, **variant.baseline_parameters, **self.fixed}


def plan_contenders(asked: Contenders, given: Mapping[str, str | None]) -> Plan:
    """The policies and the parameters, of which ``given`` are those that are options of the command."""
    from schedgym.evaluation.plan import (
        acting_parameters,
        baseline,
        expand_grid,
        resolve_id,
        resolve_policies,
    )

    problem, id = resolve_id(asked.id)
    fixed, grid = parse_parameters(problem, id, asked.preset, given, pairs(asked.set, "--set"))
    settings = expand_grid(grid)
    for setting in settings:
        problem.build(id, baseline(problem, id, acting_parameters(problem, id, fixed | setting)))
    named = None if asked.policies is None else named_policies(asked.policies, problem, id)
    options = _options(pairs(asked.option, "--option"), problem)
    policies = resolve_policies(problem, id, named, options, fixed, settings, asked.tuned)
    own = [policy.name for policy in named or () if not isinstance(policy, str)]
    agents = {label: policies.acting[label] for label in own}
    for label, agent in _agents(asked.agents, id).items():
        if label in policies.acting:
            raise InvalidParameter(f"--agents: {label!r} is the name of a policy, too: rename the file")
        agents[label] = agent
    _groups(agents)
    return Plan(problem, id, fixed, grid, policies, agents)


def _plan(asked: Asked, given: Mapping[str, str | None]) -> Plan:
    plan = plan_contenders(asked, given)
    reference = asked.reference
    if reference is None:
        usual = plan.problem.ids[plan.id].reference
        reference = usual if usual in plan.acting else next(iter(plan.acting))
    reference = reference.removeprefix(f"{plan.problem.name}/")
    if reference not in plan.acting:
        raise UnknownName("reference policy", reference, plan.acting)
    searching = _searching(asked.best_known, plan.id, list(plan.acting))
    return dataclasses.replace(plan, reference=reference, searching=searching)


def _searching(text: str | None, id: str, labels: Sequence[str]) -> dict[str, Any]:
    """Label -> the search for the best known schedules of a budget, from the shipped agent."""
    if text is None:
        return {}
    from schedgym.agents.files import load_pretrained
    from schedgym.evaluation.best_known import BEST_KNOWN, BestKnown, Budget

    if BEST_KNOWN in labels:
        raise InvalidParameter(f"--best-known: {BEST_KNOWN!r} is the name of a policy: rename it")
    return {BEST_KNOWN: BestKnown(load_pretrained(id), Budget.parse(text))}


def _agents(text: str | None, id: str) -> dict[str, Any]:
    """Label -> policy, for the agents that a comma list names."""
    found: dict[str, Any] = {}
    if text is None:
        return found
    from schedgym.agents.agent_policy import agents_of
    from schedgym.agents.search_policy import make_contender

    for agent in agents_of(map(str.strip, text.split(",")), id, make_contender):
        if agent.name in found:
            raise InvalidParameter(f"--agents: two are called {agent.name!r}")
        found[agent.name] = agent
    return found


def _groups(agents: Mapping[str, Any]) -> list[list[str]]:
    """The labels of the agents that one configuration trained with several seeds.

    Raises:
        InvalidParameter: for two of one seed among them.
    """
    groups: dict[str, dict[str, int]] = {}  # configuration -> label -> its seed
    for label, policy in agents.items():
        if getattr(policy, "plans", ""):
            continue  # no training of its own
        config = policy.agent.metadata["config"]
        same = json.dumps({**config, "seed": None}, sort_keys=True)
        groups.setdefault(same, {})[label] = config.get("seed", 0)
    several = [seeds for seeds in groups.values() if len(set(seeds.values())) > 1]
    for seeds in several:
        for seed in seeds.values():
            twins = [other for other in seeds if seeds[other] == seed]
            if len(twins) > 1:
                raise InvalidParameter(
                    f"--agents: {' and '.join(twins)} are of training seed {seed} of one configuration: "
                    "leave one out"
                )
    return [list(seeds) for seeds in several]


def _trainings(plan: Plan, evaluation: "Evaluation") -> list[dict[str, Any]]:
    """The agents that one configuration trained with several seeds, against the best baseline, by setting."""
    baselines = [label for label in plan.policies.acting if label not in plan.agents]
    return [
        {
            "setting": setting,
            "agents": labels,
            **dataclasses.asdict(comparison.improvement(labels, baselines)),
        }
        for setting, comparison in evaluation.comparisons()
        for labels in _groups(plan.agents)
        if baselines
    ]


def _options(given: Mapping[str, str], problem: Problem) -> dict[str, dict[str, Any]]:
    """Turn POLICY.NAME -> text into policy -> options in their types."""
    texts: dict[str, dict[str, str]] = {}
    for key, text in given.items():
        policy, dot, option = key.rpartition(".")
        if not dot:
            raise InvalidParameter(f"--option: must be POLICY.NAME=VALUE, got {key + '=' + text!r}")
        texts.setdefault(policy, {})[option] = text
    return {policy: policy_options(policy, problem, own) for policy, own in texts.items()}


def _context(plan: Plan, evaluation: "Evaluation") -> str:
    """Describe the runs in one line: the id, parameters that differ from its defaults, episodes, seed."""
    fields = plan.problem.parameters.__dataclass_fields__
    parts = [plan.id]
    for key, value in plan.fixed.items():
        if value != plan.problem.ids[plan.id].parameters.get(key, fields[key].default):
            text = Path(value).name if isinstance(value, str) else value_text(value)
            parts.append(f"{key}={text}")
    parts += [f"{key}={','.join(value_text(v) for v in values)}" for key, values in plan.grid.items()]
    count, seed = evaluation.episodes, evaluation.seed
    return " · ".join([*parts, f"{count} episode{'s' if count != 1 else ''}", f"seed {seed}"])


def _report(plan: Plan, evaluation: "Evaluation") -> dict[str, Any]:
    """The comparison as JSON data."""
    from schedgym.evaluation.manifest import make_manifest
    from schedgym.evaluation.statements import examine

    return {
        "problem": plan.problem.name,
        "id": plan.id,
        "objective": evaluation.objective.name,
        "unit": evaluation.objective.unit,
        "reference": plan.reference,
        "distinct": evaluation.distinct,
        "views": evaluation.views,
        "policy_seconds": evaluation.policy_seconds,
        "tuned": {label: entry["options"] for label, entry in plan.policies.tuned.items()},
        "summary": evaluation.summary().to_dict("records"),
        "differences": evaluation.differences(plan.reference).to_dict("records"),
        "trainings": _trainings(plan, evaluation),
        "best_known": {label: dataclasses.asdict(own.budget) for label, own in plan.searching.items()},
        "statements": [dataclasses.asdict(item) for item in examine(evaluation)],
        "values": evaluation.frame.to_dict("list"),
        "manifest": make_manifest(
            seeds=[evaluation.seed], parameters={**plan.base, **plan.grid}, options=plan.policies.options
        ),
    }


# what is printed -----------------------------------------------------------------------------------


def _print_statements(evaluation: "Evaluation") -> None:
    """Print the paper's statements about these policies, with the verdict on these workloads."""
    from schedgym.evaluation.statements import examine

    rows = []
    for item in examine(evaluation):
        setting = ", ".join(f"{name} {value_text(value)}" for name, value in item.setting.items())
        text = f"{item.statement.policy} has a better {item.statement.metric} than {item.rival}"
        rows.append(
            (
                f"{setting}: {text}" if setting else text,
                f"{100 * item.statement.by:.0f}%" if item.statement.by else "better",
                "-" if math.isnan(item.gain) else f"{percent_text(100 * item.gain)}%",
                interval_text(100 * item.low, 100 * item.high),
                item.verdict,
                item.statement.source,
            )
        )
    if rows:
        headings = ("statement", "stated", "measured", "95% interval", "verdict", "source")
        title = "What the paper says of them, on these workloads"
        make_console().print(make_table(title, headings, rows))
        say("percentages: of the mean of the policy named second (in the table above: of the reference's)")


def _print_comparison(evaluation: "Evaluation", reference: str, context: str) -> None:
    problem, swept = evaluation.problem, evaluation.swept
    objective, variant = evaluation.objective, problem.ids[evaluation.id]
    comparisons = list(evaluation.comparisons())
    against = [
        {label: own.against(label, reference) for label in own.tables if label != reference}
        for _, own in comparisons
    ]
    # a reference close to 0 in some episodes has no relative interval
    relative = [found.relative for row in against for found in row.values()]
    absolute = any(math.isnan(own.low if evaluation.episodes > 1 else own.value) for own in relative)
    bounded = any(own.bound(label).size for _, own in comparisons for label in own.tables)
    measured = set(evaluation.frame["metric"])
    names = [name for name in variant.table if name != objective.name and name in measured]
    fixed = [*swept, "policy", metric_text(objective), "95% interval"]
    fixed += ["ratio to bound"] * bounded
    fixed += [f"vs {reference} [{objective.unit if absolute else '%'}]", "95% interval", *["[%]"] * absolute]
    fixed.append("policy time [ms]")
    took = iter(evaluation.policy_seconds)  # in the order of the settings and of their policies
    rows: list[list[str] | None] = []
    truncated: list[str] = []
    for (setting, comparison), differences in zip(comparisons, against, strict=True):
        rows += [None] if rows else []
        shown = [value_text(value) for value in setting.values()]
        for label, table in comparison.tables.items():
            mean, bound = comparison.mean(label), comparison.bound(label)
            cells = [label, four_digits(mean.value), interval_text(mean.low, mean.high)]
            if bounded:
                least = float(bound.mean()) if bound.size else math.nan
                cells.append(four_digits(mean.value / least if least > 0 else math.nan))
            cells += _difference(differences.get(label), absolute)
            cells.append(four_digits(1000 * next(took)["seconds"]))
            cells += [four_digits(float(evaluation.metric(label, name, **setting).mean())) for name in names]
            rows.append([*shown, *cells])
            shown = [""] * len(setting)
            if share := evaluation.metric(label, "truncated", **setting).mean():
                truncated.append(f"{label} ({round(share * table.size)} of {table.size})")
    headings = [metric_text(problem.metric(name)) for name in names]
    _print_fitted(variant.title, fixed, headings, rows, len(swept))
    _print_notes(evaluation, bounded, truncated)
    say(context)


def _print_machines(plan: Plan) -> None:
    """Print whether the machines of a trace are one pool, which jobs are left out, and whether GPUs are."""
    from schedgym.traces import read_trace
    from schedgym.traces.base import tasks_of
    from schedgym.traces.machines import place

    base = plan.base
    if "pool" not in plan.problem.parameters.kinds() or base.get("trace") is None:
        return
    trace = read_trace(base["trace"], nodes=base.get("nodes"), format=base.get("trace_format"))
    tasks = tasks_of(trace, "machines")
    for line in place(tasks, base.get("pool")).lines:
        say(line)
    if tasks.gpu.any() and "gpu" not in base.get("resources", ()):
        say("gpus: left out, as resources does not name them (--set resources=cpu+memory+gpu)")


def _print_trainings(plan: Plan, evaluation: "Evaluation") -> None:
    """Print what the agents that one configuration trained with several seeds are worth together."""

    def interval(own: Mapping[str, float], show: Callable[[float], str] = four_digits) -> str:
        return f"{show(own['value'])} [{interval_text(own['low'], own['high'], show)}]"

    def percent(share: float) -> str:
        return f"{percent_text(100 * share)}%"

    objective = metric_text(evaluation.objective)
    for own in _trainings(plan, evaluation):
        setting = "".join(f"{name} {value_text(value)}: " for name, value in own["setting"].items())
        say(
            f"{setting}{len(own['agents'])} trainings, from {own['agents'][0]} to {own['agents'][-1]}: "
            f"{objective} {interval(own['value'])}, {interval(own['relative'], percent)} against the best "
            f"baseline, {own['rival']} (interquartile means of the trainings); better in an episode with "
            f"probability {interval(own['probability'])} (95% intervals over training seeds and episodes)"
        )


def _print_searching(plan: Plan, evaluation: "Evaluation") -> None:
    """Print what the row of the best known schedules is, and how far the best policy is from them."""
    from schedgym.evaluation.best_known import distances

    for label, own in plan.searching.items():
        say(
            f"{label}: no policy, but the best schedule known of each episode: a policy's, or that of an "
            f"offline search which knows all of the episode ({own.budget}, from the shipped agent)"
        )
        for setting, policy, distance in distances(evaluation):
            where = "".join(f"{name} {value_text(value)}: " for name, value in setting.items())
            say(f"{where}the best policy, {policy}, is {percent_text(100 * distance)}% from it in the mean")


def _print_tuned(plan: Plan, evaluation: "Evaluation") -> None:
    """Print the options that were tuned, and where they were found."""
    if not plan.policies.tuned:
        say("tuned: no policy has options that were found better than its defaults")
    for label, entry in plan.policies.tuned.items():
        own = entry["parameters"]
        where = "these parameters" if own == plan.fixed else options_text(own) or "the default parameters"
        say(f"tuned: {label} {options_text(entry['options'])}, found on {where}")
        first = entry.get("choosing", [0])[0]
        traces = {Path(path).name for path in (plan.fixed.get("trace"), *plan.grid.get("trace", ())) if path}
        if own.get("trace") is not None and Path(own["trace"]).name in traces:
            if evaluation.seed != 0 or evaluation.episodes > first:
                say(f"these windows may be among those of the tuning: --seed 0 --episodes {first} has others")


def _print_fitted(
    title: str, fixed: list[str], metrics: list[str], rows: list[list[str] | None], names: int
) -> None:
    """Print a table with as many of the metrics as fit; --json and --csv have them all."""
    console, endless = make_console(), make_console(width=10_000)
    narrow = has_width(console)
    for count in range(len(metrics), -1, -1):
        headings = [*fixed, *metrics[:count]]
        if narrow:
            headings = ["\n".join(textwrap.wrap(text, 13, break_long_words=False)) for text in headings]
        table = make_table(title, headings, [row and row[: len(headings)] for row in rows])
        for i, column in enumerate(table.columns):
            column.justify, column.no_wrap = "left" if i == names else "right", True
        needed = endless.measure(table).maximum
        if not narrow or needed <= console.width:
            break
    console.width = max(console.width, needed)  # a line that wraps is read, one that is cut is not
    console.print(table)


def _print_notes(evaluation: "Evaluation", bounded: bool, truncated: list[str]) -> None:
    notes = [
        "means over the episodes; *: the interval excludes 0",
        "policy time: median CPU time of an episode's decisions (an agent in compiled code: of all of it)",
    ]
    if bounded:
        notes.append("ratio to bound: of the means, - where the bound is 0")
    say("; ".join(notes))
    episodes, distinct = evaluation.episodes, evaluation.distinct
    if distinct < episodes:
        say(f"{episodes} episodes over {distinct} different lists of jobs: intervals are too narrow")
    elif 1 < episodes < FEW:
        say(f"only {episodes} episodes: intervals of so few tend to be too narrow")
    if truncated:
        say(f"episodes that ended with work left (its charge is included): {', '.join(truncated)}")
    if views := evaluation.views:
        text = ", ".join(f"{policy} ({view})" for policy, view in views.items())
        say(f"in a view of their own: {text}")


def _signed(value: float) -> str:
    return ("+" if value > 0 else "") + four_digits(value)


def _difference(found: "Difference | None", absolute: bool) -> list[str]:
    """Cells of a paired difference: relative with its interval, or absolute with its own and relative."""
    if found is None:
        return ["reference", "", ""] if absolute else ["reference", ""]
    own, relative = found.difference, percent_text(100 * found.relative.value)
    # both intervals resample the same episodes, but only this one always exists
    mark = " *" if own.differs else "  "
    if absolute:
        return [_signed(own.value) + mark, interval_text(own.low, own.high, _signed), relative]
    low, high = 100 * found.relative.low, 100 * found.relative.high
    mark = " *" if found.relative.differs else "  "
    return [relative + mark, interval_text(low, high, percent_text)]
