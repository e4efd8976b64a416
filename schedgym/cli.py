"""The command line: every command, and what it prints.

typer, rich and everything behind them are imported when a command needs them. An error of the user's
making is one line on stderr and exit code 2, and no file is written; any other exception keeps its
traceback.
"""

# annotations are evaluated: typer reads them, and typer is no global of this module
import dataclasses
import errno
import functools
import importlib
import inspect
import itertools
import json
import math
import os
import shlex
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from gymnasium.error import Error as GymnasiumError

from schedgym._version import __version__
from schedgym.core.files import atomic_write
from schedgym.core.problem import Parameters, Problem, get_problem, list_problems
from schedgym.errors import InvalidParameter, SchedgymError, UnknownName, suggest
from schedgym.evaluation import require
from schedgym.evaluation.wording import (
    describe_range,
    describe_space,
    four_digits,
    has_width,
    make_console,
    value_text,
)

__all__ = ["main"]

USAGE = 2
INTERRUPTED = 130
FEW = 8  # episodes; bootstrap intervals of fewer are noticeably too narrow
TRACE_PRESET = "trace"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: the arguments; None takes those of the process.

    Returns:
        the exit code: 0, 2 for an error of the user's making, 130 when interrupted.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        command = _application()
        first = arguments[0] if arguments else "--help"
        if not first.startswith("-") and first not in command.commands:
            raise UnknownName("command", first, command.commands)
        if first == "compare":
            arguments = _spell_out_switches(arguments)
        code = command.main(args=arguments or ["--help"], prog_name="schedgym", standalone_mode=False)
        sys.stdout.flush()
        return int(code or 0)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # whoever read us has seen enough; the interpreter must not complain when it flushes
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if type(error).__name__ == "Abort":  # what click makes of an interrupt
            return INTERRUPTED
        message = _explain(error)
        if message is None:
            raise
        print(f"error: {' '.join(message.splitlines())}", file=sys.stderr)
        return USAGE


def _spell_out_switches(arguments: list[str]) -> list[str]:
    """``arguments`` with "true" behind every parameter that is true or false and stands without a value."""
    switches = {
        f"--{name.replace('_', '-')}"
        for problem in list_problems().values()
        for name, kind in problem.parameters.kinds().items()
        if kind is bool
    }
    spelled = []
    for i, argument in enumerate(arguments):
        spelled.append(argument)
        if argument in switches and (i + 1 == len(arguments) or arguments[i + 1].startswith("--")):
            spelled.append("true")
    return spelled


def _explain(error: Exception) -> str | None:
    """One line for an error of the user's making, None for any other."""
    if hasattr(error, "format_message"):  # click's, or typer's own copy of it
        name, context = getattr(error, "option_name", None), getattr(error, "ctx", None)
        if type(error).__name__ == "NoSuchOption" and context is not None:
            known = [option for p in context.command.params for option in p.opts if option[:2] == "--"]
            return f"unknown option {name!r}{suggest(str(name), known)}"
        return str(error.format_message()).rstrip(".")
    if isinstance(error, (SchedgymError, GymnasiumError)):
        return str(error)
    if isinstance(error, OSError) and error.errno != errno.EPIPE:
        what = error.strerror or str(error)
        return f"{error.filename}: {what}" if error.filename is not None else what
    if isinstance(error, (json.JSONDecodeError, UnicodeDecodeError)):
        return str(error)
    return None


@functools.cache
def _application() -> Any:
    """The commands; each declaration only hands on to the function that does the work."""
    typer = require("typer")
    require("rich")
    app = typer.Typer(
        help="Cluster job scheduling: the papers' algorithms on the same workloads, with bounds.",
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    trace = typer.Typer(help="Public cluster traces.", rich_markup_mode=None)
    app.add_typer(trace, name="trace")
    agents = typer.Typer(help="Trained agents.", rich_markup_mode=None)
    app.add_typer(agents, name="agents")
    option, argument = typer.Option, typer.Argument

    def show_version(wanted: bool) -> None:
        if wanted:
            print(f"schedgym {__version__}")
            raise typer.Exit()

    @app.callback()  # type: ignore[untyped-decorator]
    def root(
        version: Annotated[
            bool, option("--version", callback=show_version, is_eager=True, help="Print the version.")
        ] = False,
    ) -> None:
        pass

    id_type = Annotated[str, argument(help="Environment id, e.g. schedgym/QueueDelay-v0.")]
    set_type = Annotated[
        list[str] | None, option("--set", metavar="NAME=VALUE", help="A parameter of the environment.")
    ]
    json_type = Annotated[Path | None, option("--json", metavar="FILE", help="Write the result here.")]
    seed_type = Annotated[int, option("--seed", help="Decides everything random.")]

    @app.command("list")  # type: ignore[untyped-decorator]
    def list_command(
        problem: Annotated[str | None, option("--problem", help="Only this problem.")] = None,
    ) -> None:
        """Environment ids and policies."""
        _list(problem)

    @app.command("describe")  # type: ignore[untyped-decorator]
    def describe_command(
        name: Annotated[str, argument(help="An environment id, a problem or a policy.")],
    ) -> None:
        """What an environment or a policy is: spaces, views, parameters, metrics; source, options."""
        _describe(name)

    def compare_command(
        id: id_type,
        policies: Annotated[
            str | None, option("--policies", metavar="A,B", help="Names; default: the id's.")
        ] = None,
        agents_: Annotated[
            str | None,
            option("--agents", metavar="A,B", help="Agent files, or pretrained: the shipped one."),
        ] = None,
        episodes: Annotated[
            int | None, option("--episodes", help="Per policy; default: 20, or all windows of a trace.")
        ] = None,
        seed: seed_type = 0,
        preset: Annotated[str | None, option("--preset", help="Named parameters: see describe.")] = None,
        set_: set_type = None,
        option_: Annotated[
            list[str] | None, option("--option", metavar="POLICY.NAME=VALUE", help="Of a policy.")
        ] = None,
        n_jobs: Annotated[int, option("--n-jobs", help="Processes; -1: one per core.")] = 1,
        json_: json_type = None,
        csv: Annotated[Path | None, option("--csv", metavar="FILE", help="Write every value here.")] = None,
        plot: Annotated[
            Path, option("--plot", metavar="FILE", help="Picture (.png, .svg, .pdf); none: no picture.")
        ] = Path("compare.png"),
        reference: Annotated[
            str | None, option("--reference", help="Policy that differences refer to.")
        ] = None,
        **given: str | None,
    ) -> None:
        """Run policies on the same workloads and compare them.

        Every parameter of the problem is an option; a comma list of values runs each, several lists run
        all combinations, and the first list is the x axis of the picture. One that is true or false may
        stand without a value, which means true.
        """
        _compare(
            id,
            policies=policies,
            agents=agents_,
            episodes=episodes,
            seed=seed,
            preset=preset,
            settings=set_ or [],
            options=option_ or [],
            n_jobs=n_jobs,
            json_path=json_,
            csv_path=csv,
            plot_path=None if str(plot).lower() == "none" else plot,
            reference=reference,
            given={name: text for name, text in given.items() if text is not None},
        )

    compare_command.__signature__ = _with_parameters(  # type: ignore[attr-defined]
        compare_command, option
    )
    app.command("compare")(compare_command)

    @app.command("run")  # type: ignore[untyped-decorator]
    def run_command(
        id: id_type,
        policy: Annotated[str, option("--policy", help="Name of the policy.")],
        workload: Annotated[Path, option("--workload", metavar="FILE", help="Workload: .json or .npz.")],
        option_: Annotated[
            list[str] | None, option("--option", metavar="NAME=VALUE", help="Of the policy.")
        ] = None,
        set_: set_type = None,
        seed: seed_type = 0,
        json_: json_type = None,
    ) -> None:
        """Schedule one workload and tell every job's fate."""
        _run(id, policy, workload, option_ or [], set_ or [], seed, json_)

    @app.command("train")  # type: ignore[untyped-decorator]
    def train_command(
        id: id_type,
        algorithm: Annotated[
            str | None, option("--algo", metavar="NAME", help="cma, ppo or maskable-ppo; default: any.")
        ] = None,
        config: Annotated[
            str | None,
            option("--config", metavar="FILE", help="YAML, or the name of a shipped one; default: the id's."),
        ] = None,
        set_: Annotated[
            list[str] | None,
            option("--set", metavar="NAME=VALUE", help="A field, section.field, or parameters.name."),
        ] = None,
        seed: Annotated[int | None, option("--seed", help="Of the training; default: the file's.")] = None,
        output: Annotated[
            Path | None, option("--output", "-o", metavar="FILE", help="The agent file (.npz).")
        ] = None,
        resume: Annotated[bool, option("--resume", help="Go on from the checkpoint.")] = False,
        restart: Annotated[bool, option("--restart", help="Begin again, whatever checkpoint.")] = False,
        logs: Annotated[Path | None, option("--logs", metavar="FOLDER", help="For TensorBoard.")] = None,
    ) -> None:
        """Train an agent from a configuration, and write its file.

        The curve is that of validation episodes. While it runs, a checkpoint stands beside the agent file.
        """
        _train(id, algorithm, config, set_ or [], seed, output, resume, restart, logs)

    @agents.command("list")  # type: ignore[untyped-decorator]
    def agents_list_command() -> None:
        """The agents and the configurations that are shipped."""
        _list_agents()

    @agents.command("show")  # type: ignore[untyped-decorator]
    def agents_show_command(
        agent: Annotated[str, argument(help="An agent file, or the environment id of a shipped agent.")],
    ) -> None:
        """What an agent file says of itself, as JSON."""
        _show_agent(agent)

    @app.command("sweep")  # type: ignore[untyped-decorator]
    def sweep_command(
        spec: Annotated[Path, argument(metavar="FILE", help="What is run (YAML).")],
        output: Annotated[
            Path | None, option("--output", "-o", metavar="FILE", help="The store; default: FILE with .db.")
        ] = None,
        engine: Annotated[
            str, option("--engine", metavar="local|ray", help="Processes here, or a Ray cluster.")
        ] = "local",
        n_jobs: Annotated[int, option("--n-jobs", help="Processes; -1: one per core.")] = -1,
        retry_failed: Annotated[
            bool, option("--retry-failed", help="Run again what has failed before.")
        ] = False,
    ) -> int:
        """Run all that a specification names, and store each result as it ends.

        What the store holds is not run again: a sweep that was cut off goes on. The exit code is 1 if units
        have failed.
        """
        return _sweep(spec, output, engine, n_jobs, retry_failed)

    store_type = Annotated[Path, argument(metavar="STORE", help="Of `schedgym sweep`.")]
    code_type = Annotated[
        str | None, option("--code", metavar="VERSION", help="Of the results; default: the newest.")
    ]

    @app.command("report")  # type: ignore[untyped-decorator]
    def report_command(
        store: store_type,
        output: Annotated[
            Path | None, option("--output", "-o", metavar="FILE", help="Default: STORE with .html.")
        ] = None,
        policy: Annotated[str | None, option("--policy", help="Whose schedule is drawn.")] = None,
        episode: Annotated[int | None, option("--episode", help="That is drawn.")] = None,
        seed: Annotated[int | None, option("--seed", help="Of that episode.")] = None,
        title: Annotated[str | None, option("--title", help="Default: the store's name.")] = None,
        confidence: Annotated[float, option("--confidence", help="Of all intervals.")] = 0.95,
        code: code_type = None,
    ) -> None:
        """Write one HTML file that needs no network: leaderboards, plots, a schedule, the manifest."""
        _report_store(store, output, policy, episode, seed, title, confidence, code)

    @app.command("export")  # type: ignore[untyped-decorator]
    def export_command(
        store: store_type,
        output: Annotated[Path, option("--output", "-o", metavar="FILE", help="A .csv or .parquet file.")],
        table: Annotated[
            str, option("--table", metavar="episodes|leaderboard", help="A row per value, or per policy.")
        ] = "episodes",
        id: Annotated[str | None, option("--id", help="Only this environment id.")] = None,
        code: code_type = None,
    ) -> None:
        """Write what a store holds as a table."""
        _check_output(output)
        export = importlib.import_module("schedgym.evaluation.export").export
        rows = export(store, output, table=table, id=id, code=code)
        print(f"wrote {output} ({rows:,} rows)")

    @trace.command("inspect")  # type: ignore[untyped-decorator]
    def inspect_command(
        file: Annotated[Path, argument(help="The trace's file of tasks.")],
        nodes: Annotated[Path | None, option("--nodes", metavar="FILE", help="Its machines.")] = None,
        on_error: Annotated[
            str, option("--on-error", metavar="raise|skip", help="What a malformed row does.")
        ] = "raise",
        json_: json_type = None,
    ) -> None:
        """Facts of a trace file."""
        _inspect(file, nodes, on_error, json_)

    @trace.command("fetch")  # type: ignore[untyped-decorator]
    def fetch_command(name: Annotated[str, argument(help="Name of a public trace.")]) -> None:
        """Download a public trace into the cache, its SHA-256 checked, and print the path."""
        from schedgym.traces.fetch import fetch

        print(fetch(name))

    @app.command("claims")  # type: ignore[untyped-decorator]
    def claims_command(
        paper: Annotated[str | None, argument(help="A paper's or a claim's name; default: all.")] = None,
        scale: Annotated[
            str, option("--scale", metavar="small|paper", help="Seconds a paper, or minutes.")
        ] = "small",
        seed: seed_type = 0,
        json_: json_type = None,
    ) -> int:
        """Theorems and claims of the papers, each with its verdict from this run.

        The exit code is 1 if a verdict is not the one that is recorded.
        """
        _check_output(json_)
        return int(importlib.import_module("schedgym.claims").main(paper, scale, seed, json_))

    @app.command("reproduce")  # type: ignore[untyped-decorator]
    def reproduce_command(
        names: Annotated[
            list[str] | None, argument(metavar="[NAME]...", help="004/fig4.6, or 004; default: all.")
        ] = None,
        scale: Annotated[
            str, option("--scale", metavar="small|paper", help="Minutes for all, or the paper's sizes.")
        ] = "small",
        folder: Annotated[Path, option("-o", "--output", help="Folder for the files.")] = Path("reproduced"),
        seed: seed_type = 0,
        n_jobs: Annotated[int, option("--n-jobs", help="Processes; -1: one per core.")] = -1,
        again: Annotated[bool, option("--again", help="Also what is there from an earlier run.")] = False,
        show: Annotated[bool, option("--list", help="Only list the figures.")] = False,
    ) -> int:
        """Figures of the papers: data, picture, and what is claimed beside what is measured.

        A run that was cut off goes on where it was. The exit code is 1 if one cannot be made.
        """
        run = importlib.import_module("schedgym.reproduce").main
        return int(run(names or [], scale, folder, seed, n_jobs, again, show))

    @app.command("bench")  # type: ignore[untyped-decorator]
    def bench_command(
        name: Annotated[
            str | None, argument(metavar="[ID]", help="An environment id or a problem; default: all.")
        ] = None,
        quick: Annotated[bool, option("--quick", help="A shorter run.")] = False,
        growth: Annotated[
            bool, option("--growth", help="How episodes' times grow with jobs and servers.")
        ] = False,
        json_: json_type = None,
    ) -> None:
        """Steps per second of both faces, and their ratio to CartPole; or the growth of times."""
        _check_output(json_)
        room = "growth" if growth else "bench"
        importlib.import_module(f"schedgym.evaluation.{room}").main(name, quick=quick, json=json_)

    return typer.main.get_command(app)


def _with_parameters(command: Callable[..., None], option: Callable[..., Any]) -> inspect.Signature:
    """The command's signature with an option for every parameter of every problem."""
    signature = inspect.signature(command)
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    taken = {p.name.strip("_") for p in own}
    texts: dict[str, dict[str, list[str]]] = {}  # parameter -> help -> problems
    for problem in list_problems().values():
        for name, field in problem.parameters.__dataclass_fields__.items():
            text = f"{field.metadata.get('help', '')} ({value_text(field.default)})"
            texts.setdefault(name, {}).setdefault(text, []).append(problem.name)
    added = []
    for name, helps in texts.items():
        if name in taken:  # --set reaches those that share a name with an option
            continue
        parts = [f"{', '.join(names)}: {text}" for text, names in helps.items()]
        flag, text = f"--{name.replace('_', '-')}", "; ".join(parts if len(helps) > 1 else helps)
        kind = Annotated[str | None, option(flag, metavar="VALUE,..", help=text)]
        added.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind))
    return signature.replace(parameters=[*own, *added])


# input ---------------------------------------------------------------------------------------------


def _check_output(path: Path | None, suffixes: Iterable[str] = ()) -> None:
    """Refuse, before any work, a file that could not be written afterwards."""
    if path is None:
        return
    folder = path.parent
    if suffixes and path.suffix.lower() not in suffixes:
        raise InvalidParameter(f"{path}: must end in {', '.join(suffixes)}")
    if not folder.is_dir():
        raise InvalidParameter(f"{path}: there is no folder {str(folder)!r}")
    if path.is_dir():
        raise InvalidParameter(f"{path}: is a folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InvalidParameter(f"{path}: the folder {str(folder)!r} cannot be written to")


def _pairs(texts: Iterable[str], flag: str) -> dict[str, str]:
    """NAME=VALUE texts as a dict."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise InvalidParameter(f"{flag}: must be NAME=VALUE, got {text!r}")
        if name in found:
            raise InvalidParameter(f"{flag}: {name} is given twice")
        found[name] = value.strip()
    return found


def _parse_values(parameters: type[Parameters], name: str, text: str) -> list[Any]:
    """The values of a comma list; a file's name may contain commas."""
    kinds = parameters.kinds()
    if name not in kinds:
        raise UnknownName("parameter", name, kinds)
    parts = [text] if os.path.exists(text) else [part.strip() for part in text.split(",")]
    if not all(parts):
        raise InvalidParameter(f"{name}: an empty value in {text!r}")
    values = [parameters.parse(name, part) for part in parts]
    for value in values:
        if values.count(value) > 1:
            raise InvalidParameter(f"{name}: {value} is given twice")
    return values


def _parse_option(name: str, text: str, default: Any) -> Any:
    """A policy's option written as text, in the type of its default."""
    words = {"true": True, "false": False, "none": None, "null": None}
    if isinstance(default, bool):
        if text.lower() not in ("true", "false"):
            raise InvalidParameter(f"{name}: must be true or false, got {text!r}")
        return words[text.lower()]
    if isinstance(default, str):
        return text
    if isinstance(default, (tuple, list)):
        kinds = {type(item) for item in default} or {float}
        return tuple(_number(name, part, float in kinds) for part in text.split(","))
    if isinstance(default, (int, float)):
        return _number(name, text, isinstance(default, float))
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _number(name: str, text: str, fraction: bool) -> float | int:
    try:
        return float(text) if fraction else int(text)
    except ValueError:
        wanted = "a number" if fraction else "a whole number"
        raise InvalidParameter(f"{name}: must be {wanted}, got {text.strip()!r}") from None


def _policy_options(name: str, problem: Problem, given: Mapping[str, str]) -> dict[str, Any]:
    """Typed options of a policy; names that do not exist are left to ``make_policy`` to refuse."""
    from schedgym.core.policy import get_policy_spec

    spec = get_policy_spec(name, problem.name)
    known = spec.options()
    parsed: dict[str, Any] = {}
    for option, text in given.items():
        if option in spec.fixed:
            raise InvalidParameter(f"{spec.name}: option {option} is fixed to {spec.fixed[option]!r}")
        if option not in known:
            raise UnknownName(f"option of {spec.name}", option, known)
        parsed[option] = _parse_option(f"{spec.name}: {option}", text, known[option])
    return parsed


def _preset(problem: Problem, name: str | None, traced: bool) -> dict[str, Any]:
    if name is None:
        return dict(problem.presets.get(TRACE_PRESET, {})) if traced else {}
    if name not in problem.presets:
        raise UnknownName("preset", name, problem.presets)
    return dict(problem.presets[name])


# output --------------------------------------------------------------------------------------------


def _table(title: str = "") -> Any:
    box = require("rich.box")
    return require("rich.table").Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )


def _plain(value: Any) -> Any:
    """JSON without NaN and infinity: they become null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):  # numpy's
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value


def _write_json(content: Mapping[str, Any], path: Path | None) -> None:
    if path is not None:
        text = json.dumps(_plain(content), indent=1, allow_nan=False)
        with atomic_write(path) as stream:
            stream.write(text + "\n")


def _escape(text: str) -> str:
    return str(require("rich.markup").escape(text))


# list, describe ------------------------------------------------------------------------------------


def _list(name: str | None) -> None:
    from schedgym.core.policy import list_policies

    chosen = [get_problem(name)] if name is not None else list(list_problems().values())
    console = make_console()
    for problem in chosen:
        table = _table()
        for heading in ("id", "problem", "title"):
            table.add_column(heading)
        for id, variant in problem.ids.items():
            table.add_row(id, problem.name, _escape(variant.title))
        console.print(table)
        table = _table()
        table.add_column("policy", no_wrap=True)
        table.add_column("source")
        table.add_column("what it does")
        default = {policy for variant in problem.ids.values() for policy in variant.policies}
        for spec in list_policies(problem.name):
            mark = "*" if spec.name.partition("/")[2] in default else ""
            table.add_row(spec.name + mark, _escape(spec.source), _escape(spec.help))
        console.print(table)
        console.print("* run by `schedgym compare` unless --policies says otherwise")
        if len(problem.ids) > 1:
            for id, variant in problem.ids.items():
                console.print(f"  {id}: {', '.join(variant.policies)}", soft_wrap=True)


def _describe(name: str) -> None:
    from schedgym.core.policy import list_policies
    from schedgym.evaluation.runner import find_id

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


def _describe_id(problem: Problem, id: str) -> None:
    import gymnasium

    variant = problem.ids[id]
    console = make_console()
    console.print(f"[bold]{_escape(id)}[/bold]  {_escape(variant.title)}")
    console.print(f"Source: {_escape(problem.source)}")
    env = gymnasium.make(id, disable_env_checker=True).unwrapped
    default = getattr(env, "interface").view  # noqa: B009
    console.print(f"\n[bold]Spaces[/bold] (view {default!r}, default parameters)")
    console.print(f"action: {_escape(describe_space(env.action_space))}")
    for key, space in getattr(env.observation_space, "spaces", {"": env.observation_space}).items():
        console.print(f"observation {key}: {_escape(describe_space(space))}")
    table = _table("Views (the first is of full fidelity)")
    for heading in ("view", "actions", "action space with default sizes"):
        table.add_column(heading)
    for view in problem.views:
        env = gymnasium.make(id, disable_env_checker=True, view=view.name).unwrapped
        table.add_row(view.name, _escape(view.help), _escape(describe_space(env.action_space)))
    console.print(table)
    table = _table("Parameters (--name value, or --set name=value)")
    for heading in ("parameter", "default", "range", "meaning"):
        table.add_column(heading)
    kinds = problem.parameters.kinds()
    for key, field in problem.parameters.__dataclass_fields__.items():
        value = variant.parameters.get(key, field.default)
        text = _escape(str(field.metadata.get("help", "")))
        table.add_row(key, value_text(value), _escape(describe_range(kinds[key], field.metadata)), text)
    console.print(table)
    changed = ", ".join(f"{k}={value_text(v)}" for k, v in variant.baseline_parameters.items())
    console.print(f"`compare` and `run` set {changed} unless told otherwise.")
    console.print("A policy that cannot act in that view acts in the first of its own.")
    objective = problem.objective_of(problem.build(id))
    table = _table(f"Metrics (objective: {objective})")
    for heading in ("metric", "unit", "better", "meaning"):
        table.add_column(heading)
    for metric in problem.metrics:
        better = {"min": "less", "max": "more"}.get(metric.better, "")
        table.add_row(metric.name, metric.unit, better, _escape(metric.help))
    console.print(table)
    table = _table("Presets (--preset name)")
    table.add_column("preset")
    table.add_column("parameters")
    for key, values in problem.presets.items():
        table.add_row(key, ", ".join(f"{k}={value_text(v)}" for k, v in values.items()))
    console.print(table)
    console.print(f"Policies of a comparison: {', '.join(variant.policies)}; reference {variant.reference}")


def _describe_policy(spec: Any) -> None:
    console = make_console()
    doc = inspect.getdoc(spec.factory) or ""
    console.print(f"[bold]{spec.name}[/bold]")
    console.print(_escape(doc))
    console.print(f"\nSource: {_escape(spec.source)}")
    console.print(f"Deviations: {_escape(spec.deviations or 'none')}")
    console.print(f"Knows beyond sizes and clock: {', '.join(spec.knows) or 'nothing'}")
    console.print(f"Views: {', '.join(spec.views) or 'see its documentation'}")
    options = ", ".join(f"{k}={value_text(v)}" for k, v in spec.options().items())
    console.print(f"Options (--option): {_escape(options or 'none')}")
    if spec.fixed:
        fixed = ", ".join(f"{k}={value_text(v)}" for k, v in spec.fixed.items())
        console.print(f"Fixed by the name: {_escape(fixed)}")


# compare -------------------------------------------------------------------------------------------


def _compare(
    name: str,
    *,
    policies: str | None,
    agents: str | None,
    episodes: int | None,
    seed: int,
    preset: str | None,
    settings: list[str],
    options: list[str],
    n_jobs: int,
    json_path: Path | None,
    csv_path: Path | None,
    plot_path: Path | None,
    reference: str | None,
    given: dict[str, str],
) -> None:
    began = time.monotonic()
    for module in ("pandas", *(("matplotlib",) if plot_path is not None else ())):
        require(module)
    from schedgym.core.policy import resolve_policy_name
    from schedgym.evaluation.plot import FORMATS, plot_comparison
    from schedgym.evaluation.runner import default_policies, resolve_id, sweep

    problem, id = resolve_id(name)
    variant = problem.ids[id]
    # in the order of the problem's own parameters, not of all problems' options
    texts = {key: given[key] for key in (*problem.parameters.kinds(), *given) if key in given}
    for key, text in _pairs(settings, "--set").items():
        if key in texts:
            raise InvalidParameter(f"--set: {key} is given twice")
        texts[key] = text
    flags = [f"--{known.replace('_', '-')}" for known in problem.parameters.kinds()]
    for key in given:
        if key not in problem.parameters.kinds():
            raise UnknownName(f"option of {id}", f"--{key.replace('_', '-')}", flags)
    parsed = {key: _parse_values(problem.parameters, key, text) for key, text in texts.items()}
    grid = {key: values for key, values in parsed.items() if len(values) > 1}
    fixed = _preset(problem, preset, parsed.get("trace", [None]) != [None])
    fixed = {key: value for key, value in fixed.items() if key not in parsed}
    fixed |= {key: values[0] for key, values in parsed.items() if len(values) == 1}
    base = {**variant.parameters, **variant.baseline_parameters, **fixed}
    combinations = [
        base | dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())
    ]
    for combination in combinations:
        problem.build(id, combination)

    names = (
        [part.strip() for part in policies.split(",")]
        if policies is not None
        else default_policies(
            problem, id, combinations, [key.rpartition(".")[0] for key in _pairs(options, "--option")]
        )
    )
    acting: dict[str, Any] = {}
    for policy in names:
        label = resolve_policy_name(policy, problem.name).removeprefix(f"{problem.name}/")
        if label in acting:
            raise InvalidParameter(f"policies: {label!r} is named twice")
        acting[label] = label
    chosen = _split_options(options, problem, list(acting))
    for label, agent in _agents(agents, id).items():
        if label in acting:
            raise InvalidParameter(f"--agents: {label!r} is the name of a policy, too: rename the file")
        acting[label] = agent
    labels = list(acting)
    if reference is None:
        reference = variant.reference if variant.reference in labels else labels[0]
    reference = reference.removeprefix(f"{problem.name}/")
    if reference not in labels:
        raise UnknownName("reference policy", reference, labels)
    _check_output(json_path)
    _check_output(csv_path)
    _check_output(plot_path, FORMATS)

    frame = sweep(id, acting, grid, episodes, seed, parameters=fixed, n_jobs=n_jobs, options=chosen)
    context = _context(problem, id, fixed, grid, frame, seed)
    seconds = time.monotonic() - began
    _print_comparison(problem, frame, reference, f"{context} · {seconds:.1f} s")
    _print_statements(frame)
    if plot_path is not None:
        plot_comparison(frame, plot_path, reference=reference, subtitle=context)
    if csv_path is not None:
        with atomic_write(csv_path) as stream:
            frame.to_csv(stream, index=False)
    if json_path is not None:
        _write_json(_report(problem, id, frame, reference, {**base, **grid}, chosen, seed), json_path)
    written = [str(path) for path in (plot_path, csv_path, json_path) if path is not None]
    if written:
        make_console().print(_escape(f"wrote {', '.join(written)}"), soft_wrap=True)


def _agents(text: str | None, id: str) -> dict[str, Any]:
    """Label -> policy, of the agents that a comma list names."""
    found: dict[str, Any] = {}
    if text is None:
        return found
    make_agent = importlib.import_module("schedgym.agents.policy").make_agent
    for source in (part.strip() for part in text.split(",")):
        agent = make_agent(source, id)
        if agent.name in found:
            raise InvalidParameter(f"--agents: two are called {agent.name!r}")
        found[agent.name] = agent
    return found


def _split_options(options: list[str], problem: Problem, labels: list[str]) -> dict[str, dict[str, Any]]:
    """--option POLICY.NAME=VALUE texts as label -> typed options."""
    texts: dict[str, dict[str, str]] = {}
    for key, text in _pairs(options, "--option").items():
        policy, dot, option = key.rpartition(".")
        if not dot:
            raise InvalidParameter(f"--option: must be POLICY.NAME=VALUE, got {key + '=' + text!r}")
        label = policy.removeprefix(f"{problem.name}/")
        if label not in labels:
            raise UnknownName("policy of this comparison", label, labels)
        texts.setdefault(label, {})[option] = text
    return {label: _policy_options(label, problem, given) for label, given in texts.items()}


def _context(
    problem: Problem,
    id: str,
    fixed: Mapping[str, Any],
    grid: Mapping[str, Sequence[Any]],
    frame: Any,
    seed: int,
) -> str:
    """What was run, in one line: the id, what differs from its defaults, episodes, seed."""
    fields = problem.parameters.__dataclass_fields__
    parts = [id]
    for key, value in fixed.items():
        if value != problem.ids[id].parameters.get(key, fields[key].default):
            text = Path(value).name if isinstance(value, str) else value_text(value)
            parts.append(f"{key}={text}")
    parts += [f"{key}={','.join(value_text(v) for v in values)}" for key, values in grid.items()]
    count = frame.attrs["episodes"]
    return " · ".join([*parts, f"{count} episode{'s' if count != 1 else ''}", f"seed {seed}"])


def _print_statements(frame: Any) -> None:
    """What the paper says about these policies, and whether it holds here."""
    from schedgym.evaluation.statements import examine

    found = examine(frame)
    if not found:
        return
    table = _table("What the paper says of them, on these workloads")
    for heading in ("statement", "stated", "measured", "95% interval", "verdict", "source"):
        table.add_column(heading)
    for item in found:
        setting = ", ".join(f"{name} {value_text(value)}" for name, value in item.setting.items())
        text = f"{item.statement.policy} has a better {item.statement.metric} than {item.rival}"
        table.add_row(
            _escape(f"{setting}: {text}" if setting else text),
            f"{100 * item.statement.by:.0f}%" if item.statement.by else "better",
            "-" if math.isnan(item.gain) else f"{100 * item.gain:+.1f}%",
            _interval(100 * item.low, 100 * item.high),
            item.verdict,
            _escape(item.statement.source),
        )
    console = make_console()
    console.print(table)
    console.print(
        "percentages: of the mean of the policy named second (in the table above: of the reference's)",
        soft_wrap=True,
    )


def _print_comparison(problem: Problem, frame: Any, reference: str, context: str) -> None:
    from schedgym.evaluation.statistics import paired_differences, plain, setting_columns, summarize

    summary = summarize(frame)
    differences = paired_differences(frame, reference)
    swept = setting_columns(frame)
    means = frame.groupby([*swept, "policy", "metric"], dropna=False, sort=False)["value"].mean()
    averages = {tuple(plain(part) for part in key): float(value) for key, value in means.items()}

    def key(row: Mapping[Any, Any]) -> tuple[Any, ...]:
        return tuple(plain(row[name]) for name in (*swept, "policy"))

    other = {key(row): row for row in differences.to_dict("records")}
    bounded = bool(summary["bound"].notna().any())
    # a reference close to 0 in some episodes has no relative interval
    many = frame.attrs["episodes"] > 1
    absolute = bool(differences["relative_low" if many else "relative"].isna().any())
    objective, variant = frame.attrs["objective"], problem.ids[frame.attrs["id"]]
    names = [name for name in variant.table if name != objective]
    timed = "policy time [ms]"
    unit = problem.metric(objective).unit
    fixed = [*swept, "policy", _heading(problem, objective), "95% interval"]
    fixed += ["ratio to bound"] * bounded
    took = {key(row): 1000 * row["seconds"] for row in frame.attrs["policy_seconds"]}
    fixed += [f"vs {reference} [{unit if absolute else '%'}]", "95% interval", *["[%]"] * absolute]
    fixed.append(timed)
    rows: list[list[str] | None] = []
    before: tuple[Any, ...] | None = None
    truncated: list[str] = []
    for row in summary.to_dict("records"):
        place = key(row)
        if before is not None and place[:-1] != before:
            rows.append(None)
        shown = [value_text(value) if place[:-1] != before else "" for value in place[:-1]]
        before = place[:-1]
        shown += [row["policy"], four_digits(row["mean"]), _interval(row["low"], row["high"])]
        shown += [four_digits(row["ratio"])] * bounded
        shown += _difference(other.get(place), absolute)
        shown.append(four_digits(took[place]))
        shown += [four_digits(averages[*place, name]) for name in names]
        rows.append(shown)
        if share := averages[*place, "truncated"]:
            count = round(share * row["episodes"])
            truncated.append(f"{row['policy']} ({count} of {row['episodes']})")
    console, endless = make_console(), require("rich.console").Console(width=10_000)
    # a narrow page gets fewer metrics rather than broken numbers; --json and --csv have them all
    for metrics in range(len(names), -1, -1):
        headings = [*fixed, *(_heading(problem, name) for name in names[:metrics])]
        table = _filled(variant.title, headings, rows, len(swept), has_width(console))
        needed = endless.measure(table).maximum
        if not has_width(console) or needed <= console.width:
            break
    console.width = max(console.width, needed)  # a line that wraps is read, one that is cut is not
    console.print(table)
    notes = [
        "means over the episodes; *: the interval excludes 0",
        "policy time: of all decisions of an episode, median",
    ]
    if bounded:
        notes.append("ratio to bound: of the means, - where the bound is 0")
    console.print(_escape("; ".join(notes)), soft_wrap=True)
    episodes, distinct = frame.attrs["episodes"], frame.attrs["distinct"]
    if distinct < episodes:
        again = f"{episodes} episodes over {distinct} different lists of jobs: intervals are too narrow"
        console.print(again, soft_wrap=True)
    elif 1 < episodes < FEW:
        few = f"only {episodes} episodes: intervals of so few tend to be too narrow"
        console.print(few, soft_wrap=True)
    if truncated:
        text = f"episodes that ended with work left (its charge is included): {', '.join(truncated)}"
        console.print(_escape(text), soft_wrap=True)
    if views := frame.attrs["views"]:
        text = ", ".join(f"{policy} ({view})" for policy, view in views.items())
        console.print(_escape(f"in a view of their own: {text}"), soft_wrap=True)
    console.print(_escape(context), soft_wrap=True)


def _heading(problem: Problem, name: str) -> str:
    unit = problem.metric(name).unit
    return name.replace("_", " ") + (f" [{unit}]" if unit else "")


def _filled(title: str, headings: list[str], rows: list[list[str] | None], swept: int, narrow: bool) -> Any:
    """A table of text cells; None among the rows is a line; the column after the swept ones holds names."""
    table = _table(title)
    for i, heading in enumerate(headings):
        lines = textwrap.wrap(heading, 13, break_long_words=False) if narrow else [heading]
        side = "left" if i == swept else "right"
        table.add_column(_escape("\n".join(lines)), justify=side, no_wrap=True)
    for row in rows:
        if row is None:
            table.add_section()
        else:
            table.add_row(*(_escape(cell) for cell in row[: len(headings)]))
    return table


def _interval(low: float, high: float, show: Callable[[float], str] = four_digits) -> str:
    return f"{show(low)} .. {show(high)}" if math.isfinite(low) and math.isfinite(high) else "-"


def _signed(value: float) -> str:
    return ("+" if value > 0 else "") + four_digits(value)


def _percent(value: float) -> str:
    """A percentage with its sign and one digit."""
    if not math.isfinite(value):
        return "-"
    if abs(value) >= 1e6:
        return f"{value:+.1e}"
    return f"{value:+,.1f}" if abs(value) < 1000 else f"{value:+,.0f}"


def _difference(row: Mapping[Any, Any] | None, absolute: bool) -> list[str]:
    """Cells of a paired difference: relative with its interval, or absolute with its own and relative."""
    if row is None:
        return ["reference", "", ""] if absolute else ["reference", ""]
    mean, low, high = (row[name] for name in ("difference", "low", "high"))
    # both intervals resample the same episodes, but only this one always exists
    mark = " *" if low > 0 or high < 0 else "  "
    if absolute:
        return [_signed(mean) + mark, _interval(low, high, _signed), _percent(100 * row["relative"])]
    low, high = 100 * row["relative_low"], 100 * row["relative_high"]
    mark = " *" if low > 0 or high < 0 else "  "
    return [_percent(100 * row["relative"]) + mark, _interval(low, high, _percent)]


def _report(
    problem: Problem,
    id: str,
    frame: Any,
    reference: str,
    parameters: Mapping[str, Any],
    options: Mapping[str, Mapping[str, Any]],
    seed: int,
) -> dict[str, Any]:
    from schedgym.evaluation.manifest import make_manifest
    from schedgym.evaluation.statements import examine
    from schedgym.evaluation.statistics import paired_differences, summarize

    return {
        "problem": problem.name,
        "id": id,
        "objective": frame.attrs["objective"],
        "unit": problem.metric(frame.attrs["objective"]).unit,
        "reference": reference,
        "views": frame.attrs["views"],
        "policy_seconds": frame.attrs["policy_seconds"],
        "summary": summarize(frame).to_dict("records"),
        "differences": paired_differences(frame, reference).to_dict("records"),
        "statements": [dataclasses.asdict(item) for item in examine(frame)],
        "values": frame.to_dict("list"),
        "manifest": make_manifest(seeds=[seed], parameters=parameters, options=dict(options)),
    }


# run -----------------------------------------------------------------------------------------------


def _run(
    name: str,
    policy: str,
    workload: Path,
    options: list[str],
    settings: list[str],
    seed: int,
    json_path: Path | None,
) -> None:
    from schedgym.core.policy import make_policy, resolve_policy_name
    from schedgym.core.workload import load_workload
    from schedgym.evaluation.manifest import make_manifest
    from schedgym.evaluation.runner import (
        acting_parameters,
        check_bound,
        lower_bound,
        make_env,
        play,
        resolve_id,
    )

    problem, id = resolve_id(name)
    _check_output(json_path)
    full = resolve_policy_name(policy, problem.name)
    acting = make_policy(full, **_policy_options(full, problem, _pairs(options, "--option")))
    texts = _pairs(settings, "--set")
    if "workload" in texts:
        raise InvalidParameter("--set: the workload is given by --workload")
    parameters = {key: problem.parameters.parse(key, text) for key, text in texts.items()}
    if seed < 0:
        raise InvalidParameter(f"seed: must be a whole number from 0, got {seed}")
    instance = load_workload(workload, problem.schema)
    parameters["workload"] = str(workload)
    parameters = acting_parameters(problem, id, parameters, full)
    env = make_env(id, parameters)
    label = full.removeprefix(f"{problem.name}/")
    outcome = play(env, acting, seed=seed, label=label)
    record = env.record()
    rooms = problem.room("metrics")
    rooms.validate(record)
    metrics: dict[str, Any] = dict(outcome.metrics)
    objective = problem.metric(problem.objective_of(env.simulator.parameters))
    bound = lower_bound(problem, instance, env.simulator.parameters)
    if bound is not None:
        check_bound(objective, instance, bound, metrics[objective.name], label)
        metrics["bound"] = bound
    console = make_console()
    table = _table(f"{label} on {workload.name}")
    for heading in ("metric", "value", "unit", "meaning"):
        table.add_column(heading, justify="right" if heading == "value" else "left")
    for metric in problem.metrics:
        table.add_row(metric.name, four_digits(metrics[metric.name]), metric.unit, _escape(metric.help))
    if bound is not None:
        table.add_row(
            "bound", four_digits(bound), objective.unit, f"no scheduler has a better {objective.name}"
        )
    console.print(table)
    if outcome.truncated:
        console.print("the episode ended with work left")
    if json_path is not None:
        content = {
            "problem": problem.name,
            "id": id,
            "policy": full,
            "metrics": metrics,
            "jobs": rooms.fates(record),
            "manifest": make_manifest(seeds=[seed], parameters=parameters),
        }
        _write_json(content, json_path)
        console.print(_escape(f"wrote {json_path}"), soft_wrap=True)


# train, agents -------------------------------------------------------------------------------------


def _train(
    name: str,
    algorithm: str | None,
    source: str | None,
    settings: list[str],
    seed: int | None,
    output: Path | None,
    resume: bool,
    restart: bool,
    logs: Path | None,
) -> None:
    from schedgym.evaluation.runner import resolve_id

    configs = importlib.import_module("schedgym.agents.config")
    files = importlib.import_module("schedgym.agents.files")
    problem, id = resolve_id(name)
    if algorithm is not None and algorithm not in configs.ALGORITHMS:
        raise UnknownName("algorithm", algorithm, configs.ALGORITHMS)
    changes = _pairs(settings, "--set")
    if seed is not None:
        if "seed" in changes:
            raise InvalidParameter("--seed: is set by --set, too")
        changes["seed"] = str(seed)
    source = configs.config_for(id, algorithm) if source is None else source
    config = configs.load_config(source, changes)
    for what, wanted, given in (("id", id, config.id), ("algorithm", algorithm, config.algorithm)):
        if wanted is not None and wanted != given:
            raise InvalidParameter(f"--config: {source} is for {what} {given!r}, not {wanted!r}")
    path = output or Path(f"{Path(source).stem}.npz")
    if path.suffix != ".npz":
        raise InvalidParameter(f"{path}: must end in .npz")
    _check_output(path)
    checkpoint = files.checkpoint_path(path)
    if resume and restart:
        raise InvalidParameter("--resume and --restart exclude each other")
    if checkpoint.exists() and not (resume or restart):
        raise InvalidParameter(
            f"{checkpoint}: a training was cut off: --resume goes on, --restart begins again"
        )
    words = ["schedgym", "train", id, "--config", source]
    words += [word for text in settings for word in ("--set", text)]
    words += [] if seed is None else ["--seed", str(seed)]
    command = shlex.join([*words, "-o", path.name])
    gradient = config.algorithm != "cma"
    module = importlib.import_module(f"schedgym.agents.{'train' if gradient else 'search'}")
    metric = problem.metric(problem.objective_of(problem.build(id, config.environment)))
    unit = f" [{metric.unit}]" if metric.unit else ""
    console = make_console()
    console.print(
        _escape(f"{id}, view {config.view}, {config.algorithm}: mean {metric.name}{unit} of validations"),
        soft_wrap=True,
    )

    def report(point: Any) -> None:
        done = f"{point.steps:>10,} steps" if gradient else f"generation {point.generation:>5}"
        console.print(f"{done}  {point.seconds:7.0f} s  {four_digits(point.objective)}", soft_wrap=True)

    run = module.train if gradient else module.train_search
    result = run(config, path, command, resume=resume, report=report, log_dir=logs)
    first, best = result.curve[0].objective, result.best.objective
    size = path.stat().st_size / 1024
    console.print(
        _escape(
            f"{metric.name} {four_digits(first)} -> {four_digits(best)} in {result.seconds:.0f} s; "
            f"wrote {path} ({size:.0f} KiB); schedgym compare {id} --agents {path}"
        ),
        soft_wrap=True,
    )


def _list_agents() -> None:
    configs = importlib.import_module("schedgym.agents.config")
    files = importlib.import_module("schedgym.agents.files")
    table = _table("shipped agents")
    for heading in ("id", "view", "algorithm", "objective at first", "trained", "minutes", "sha256"):
        table.add_column(heading)
    for path in files.list_pretrained().values():
        agent = files.load_agent(path)
        training = agent.metadata["training"]
        curve = [float(point["objective"]) for point in training["curve"]]
        table.add_row(
            agent.id,
            agent.view,
            agent.metadata["config"]["algorithm"],
            four_digits(curve[0]),
            four_digits(float(training["best"]["objective"])),
            f"{training['seconds'] / 60:.1f}",
            agent.sha256[:12],
        )
    console = make_console()
    console.print(table)
    table = _table("shipped configurations")
    for heading in ("name", "id", "view", "algorithm"):
        table.add_column(heading)
    for name in configs.list_configs():
        config = configs.load_config(name)
        table.add_row(name, config.id, config.view, config.algorithm)
    console.print(table)
    console.print("objectives are means of the validation episodes; `schedgym agents show ID` tells all")


def _show_agent(source: str) -> None:
    files = importlib.import_module("schedgym.agents.files")
    shipped = list(files.list_pretrained())
    if source == "pretrained":  # the word of `compare`, which has an id beside it
        raise InvalidParameter(f"pretrained: there is one for each id: show one of {', '.join(shipped)}")
    id = next((id for id in shipped if source in (id, id.partition("/")[2])), None)
    agent = files.load_agent(source) if id is None else files.load_pretrained(id)
    print(json.dumps({**agent.metadata, "sha256": agent.sha256}, indent=2))


# sweep, report -------------------------------------------------------------------------------------


def _sweep(spec: Path, output: Path | None, engine: str, n_jobs: int, retry_failed: bool) -> int:
    sweeps = importlib.import_module("schedgym.evaluation.sweeps")
    wanted = sweeps.load_spec(spec)
    store = output or spec.with_suffix(".db")
    _check_output(store)
    result = sweeps.run_sweep(wanted, store, engine=engine, n_jobs=n_jobs, retry_failed=retry_failed)
    console = make_console()
    known = f", {result.skipped:,} were there" if result.skipped else ""
    console.print(_escape(f"{result.done:,} units in {result.seconds:.1f} s{known}; {store}"), soft_wrap=True)
    for unit in result.failed:
        last = unit["error"].strip().splitlines()[-1]
        text = f"{unit['id']} {unit['policy'] or 'bounds'}, seed {unit['seed']}, {unit['setting']}: {last}"
        console.print(_escape(f"failed: {text}"), soft_wrap=True)
    if result.failed:
        console.print(f"{len(result.failed)} units failed; --retry-failed runs them again")
    return 1 if result.failed else 0


def _report_store(
    store: Path,
    output: Path | None,
    policy: str | None,
    episode: int | None,
    seed: int | None,
    title: str | None,
    confidence: float,
    code: str | None,
) -> None:
    path = output or store.with_suffix(".html")
    _check_output(path)
    remarks = importlib.import_module("schedgym.evaluation.report").write_report(
        store,
        path,
        policy=policy,
        episode=episode,
        seed=seed,
        title=title,
        confidence=confidence,
        code=code,
    )
    for remark in remarks:
        print(remark, file=sys.stderr)
    print(f"wrote {path} ({path.stat().st_size / 2**20:.1f} MiB)")


# trace ---------------------------------------------------------------------------------------------


def _inspect(file: Path, nodes: Path | None, on_error: str, json_path: Path | None) -> None:
    from schedgym.traces import inspect_trace

    _check_output(json_path)
    facts = inspect_trace(file, nodes=nodes, on_error=on_error)
    table = _table(str(file.name))
    table.add_column("fact")
    table.add_column("value")
    for key, value in facts.items():
        if isinstance(value, Mapping):
            shown = ", ".join(f"{name} {_fact(item)}" for name, item in value.items()) or "none"
        elif isinstance(value, list):
            shown = ", ".join(str(item) for item in value)
        else:
            shown = _fact(value)
        table.add_row(key.replace("_", " "), _escape(shown))
    console = make_console()
    console.print(table)
    _write_json(facts, json_path)
    if json_path is not None:
        console.print(_escape(f"wrote {json_path}"), soft_wrap=True)


def _fact(value: Any) -> str:
    return four_digits(value) if isinstance(value, float) else value_text(value)
