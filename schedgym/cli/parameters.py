"""The parameters of the problems as options of a command, and the reading of their values."""

import copy
import dataclasses
import functools
import inspect
import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from schedgym.cli.common import Command
from schedgym.core.problem import Parameters, Problem, list_problems
from schedgym.errors import InvalidParameter, UnknownName
from schedgym.evaluation.wording import value_text

TRACE_PRESET = "trace"
ARGUMENTS, SHOWN = "schedgym.arguments", "schedgym.shown"  # keys of click's dictionary of a call


def _help_of(problem: Problem, id: str, name: str) -> str:
    """The help of a parameter, with its default in environment ``id``."""
    field = problem.parameters.__dataclass_fields__[name]
    default = problem.ids[id].parameters.get(name, field.default)
    return f"{field.metadata.get('help', '')} [default: {value_text(default)}]"


def parameter_options(group: type[Any]) -> list[inspect.Parameter]:
    """An option for every parameter of every problem, but those named as a field of ``group``."""
    every = dict.fromkeys(name for one in list_problems().values() for name in one.parameters.kinds())
    taken = {field.name for field in dataclasses.fields(group)}  # --set reaches them
    option = functools.partial(
        inspect.Parameter,
        kind=inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[str | None, typer.Option(metavar="VALUE,..", help="See the problem.")],
    )
    return [option(name) for name in every if name not in taken]


def _problem_in(arguments: Sequence[str]) -> tuple[Problem, str] | None:
    """The problem and the id that the first of the arguments to name one names, None if none does."""
    for argument in arguments:
        for problem in list_problems().values():
            for id in problem.ids:
                if argument in (id, id.partition("/")[2], problem.name):
                    return problem, id
    return None


class _Command(Command):
    """A command; its help shows parameters only of the problem whose id the arguments name."""

    own: tuple[str, ...] = ()  # names of its arguments and options that are no parameters

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep the arguments for :meth:`format_help`, and parse them."""
        ctx.meta[ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        """All options, or those that :meth:`format_help` has chosen."""
        return ctx.meta.get(SHOWN) or super().get_params(ctx)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, with the parameters of the problem that is named; without one, say how."""
        found = _problem_in(ctx.meta.get(ARGUMENTS, ()))
        known = {option.name: option for option in self.get_params(ctx)}
        shown = {name: known[name] for name in self.own}
        if found is not None:
            problem, id = found
            for name in problem.parameters.kinds():
                if name not in shown:
                    shown[name] = copy.copy(known[name])
                    shown[name].help = _help_of(problem, id, name)
        ctx.meta[SHOWN] = [*shown.values(), known["help"]]
        super().format_help(ctx, formatter)
        if found is None:
            formatter.write_paragraph()
            formatter.write_text(
                f"`{ctx.command_path} ID --help` shows the parameters of an environment, too."
            )


def command_of(group: type[Any]) -> type[Command]:
    """The class of a command whose arguments are the fields of a dataclass and :func:`parameter_options`."""
    return type("Command", (_Command,), {"own": tuple(field.name for field in dataclasses.fields(group))})


def parse_parameters(
    problem: Problem,
    id: str,
    preset: str | None,
    given: Mapping[str, str | None],
    settings: Mapping[str, str],
) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """The parameters with one value, and those with several.

    Args:
        problem: of the environment.
        id: of the environment.
        preset: name of parameters under those given; None: those for traces, where one is given.
        given: texts of the options of parameters; None: not given.
        settings: texts of --set.
    """
    kinds = problem.parameters.kinds()
    # in the order of the problem's own parameters, not of all problems' options
    texts = {key: text for key in (*kinds, *given) if (text := given.get(key)) is not None}
    for key, text in settings.items():
        if key in texts:
            raise InvalidParameter(f"--set: {key} is given twice")
        texts[key] = text
    for key, text in given.items():
        if text is not None and key not in kinds:
            flags = [f"--{known.replace('_', '-')}" for known in kinds]
            raise UnknownName(f"option of {id}", f"--{key.replace('_', '-')}", flags)
    parsed = {key: _parse_values(problem.parameters, key, text) for key, text in texts.items()}
    if preset is not None and preset not in problem.presets:
        raise UnknownName("preset", preset, problem.presets)
    traced = TRACE_PRESET if parsed.get("trace", [None]) != [None] else ""
    fixed = dict(problem.presets.get(traced if preset is None else preset, {}))
    for key, values in parsed.items():
        fixed.pop(key, None)
        if len(values) == 1:
            fixed[key] = values[0]
    return fixed, {key: values for key, values in parsed.items() if len(values) > 1}


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
