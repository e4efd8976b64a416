"""The common part of the commands: the application, arguments, the reading of texts, tables and files."""

# annotations are evaluated: typer reads them
import functools
import inspect
import json
import os
import re
import typing
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from schedgym._version import __version__
from schedgym.core.files import atomic_write, check_output
from schedgym.core.problem import Problem
from schedgym.errors import InvalidParameter, UnknownName, one_line
from schedgym.evaluation.wording import json_data, make_console

TEMPLATES = Path(__file__).parent / "templates"
#: options that name a file to write
OUTPUTS = ("output", "json", "csv", "report", "plot", "gantt", "gif")

application = typer.Typer(
    help="Compare the papers' algorithms for cluster job scheduling on the same workloads, with bounds.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

#: parameters of several commands, as docstrings tell them
SHARED = """
    budget (BUDGET): Of the search in each instance: schedules, or CPU seconds as 20s.
    code (VERSION): Use the results of this version of the code. Default: the newest.
    id: The environment id, e.g. schedgym/QueueDelay-v0.
    json: Write the result to this JSON file.
    n_jobs: Number of parallel processes; -1 uses one per core.
    on_error (raise|skip): Stop at a malformed row, or leave such rows out.
    pool: The machines are one pool, across which a job may run. Default: if some job needs several.
    preset: Use a named set of parameters; `schedgym describe ID` lists them.
    seed: The seed of all random numbers, below 2^40.
    set (NAME=VALUE): Set a parameter of the environment; may be given repeatedly.
    store (STORE): A results store of `schedgym sweep`.
    suite (SUITE): The suite, such as QueueDelay-1.
"""

Result = TypeVar("Result")


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"schedgym {__version__}")
        raise typer.Exit()


@application.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    pass


class Command(typer.core.TyperCommand):
    """A command that takes no option twice, but those that collect their values."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse an option of which only the last value would count."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for option in given:
            if given.count(option) > 1 and not option.multiple:
                raise InvalidParameter(f"{option.opts[0]}: is given twice")
        return super().parse_args(ctx, args)


def command(
    name: str, asked: type[Any] | None = None, *, of: typer.Typer = application, **how: Any
) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Decorator of a command: its parameters, or the fields of a dataclass, are arguments and options.

    Those that can only be given by keyword are options. Each is annotated as typer wants it, or has a plain
    type and in the docstring's section "Options" (of a dataclass "Attributes"), or in SHARED, a line
    "name (METAVAR): help".

    Args:
        name: of the command.
        asked: the dataclass, which the command is then handed; None: it has its own parameters.
        of: the application, or the group of commands that it belongs to.
        **how: ``more``, further options, which the command takes as keyword arguments; else as for typer.
    """
    more = how.pop("more", ())

    def decorate(function: Callable[..., Result]) -> Callable[..., Result]:
        declared: Any = asked or function
        own, told = inspect.signature(declared).parameters.values(), _told(declared)

        @functools.wraps(function)
        def run(**given: Any) -> Result:
            _check_outputs(given)
            if asked is None:
                return function(**given)
            rest = {option.name: given.pop(option.name) for option in more}
            return function(asked(**given), **rest)

        annotations = {p.name: _annotated(p, *told.get(p.name, ())) for p in own}
        options = [p.replace(kind=p.KEYWORD_ONLY, annotation=annotations[p.name]) for p in own]
        run.__signature__ = inspect.Signature([*options, *more])  # type: ignore[attr-defined]
        run.__doc__ = (function.__doc__ or "").partition("Options:\n")[0].rstrip()
        return of.command(name, **{"cls": Command, **how})(run)

    return decorate


def _check_outputs(given: Mapping[str, Any]) -> None:
    """Refuse, before any work is done, outputs that cannot be written, are inputs, or are named twice."""
    named: dict[str, str] = {}  # file -> the argument that names it
    for name, value in sorted(given.items(), key=lambda item: item[0] in OUTPUTS):
        if name in OUTPUTS and value is not None:
            if name not in ("output", "plot"):  # a folder, a store to go on with, none: their commands check
                check_output(value)
            file = os.path.realpath(value)
            if file in named and (os.path.isfile(file) or not os.path.exists(file)):
                raise InvalidParameter(f"--{name}: {value} would replace the file of {named[file]}")
            named[file] = f"--{name}"
        elif isinstance(value, str | Path | list):
            texts = map(str, value if isinstance(value, list) else [value])
            # NAME=FILE, FILE.py:NAME, A,B
            files = {os.path.realpath(part) for text in texts for part in (text, *re.split("[=:,]", text))}
            named |= dict.fromkeys(filter(os.path.isfile, files), name)


def _told(declared: Any) -> dict[str, tuple[str | None, str]]:
    """Parameter -> metavar, if one is given, and help, of the docstring of a function or of dataclasses."""
    own = reversed(getattr(declared, "__mro__", (declared,)))  # what a subclass says comes last, and counts
    docs = [inspect.cleandoc(one.__doc__ or "") for one in own]
    texts = [SHARED, *(re.split("(?:Attributes|Options):\n", text)[-1] for text in docs)]
    lines = re.sub(r"\n {5,}", " ", "\n".join(texts)).splitlines()  # a line each
    found = (re.fullmatch(r" +(\w+)(?: \((.*?)\))?: (.*)", line) for line in lines)
    return {said[1]: (said[2], said[3]) for said in found if said}


def _annotated(own: inspect.Parameter, metavar: str | None = None, text: str = "") -> Any:
    """The annotation of a parameter as typer wants it."""
    if not text:
        return own.annotation
    if metavar is None and Path in (own.annotation, *typing.get_args(own.annotation)):
        metavar = "FILE"
    if own.kind is not own.KEYWORD_ONLY:
        return Annotated[own.annotation, typer.Argument(metavar=metavar, help=text)]
    flags = [f"--{own.name.replace('_', '-')}", *["-o"] * (own.name == "output")]
    if own.default is True or own.annotation == bool | None:
        flags[0] += f"/--no-{flags[0][2:]}"
    return Annotated[own.annotation, typer.Option(*flags, metavar=metavar, help=text)]


# input ---------------------------------------------------------------------------------------------


def pairs(texts: Iterable[str] | None, flag: str) -> dict[str, str]:
    """NAME=VALUE texts as a dict."""
    found: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise InvalidParameter(f"{flag}: must be NAME=VALUE, got {text!r}")
        if name in found:
            raise InvalidParameter(f"{flag}: {name} is given twice")
        found[name] = value.strip()
    return found


def policy_names(text: str, problem: Problem) -> list[str]:
    """The policies of a comma list (of ``--policies``); commas in parentheses belong to an expression.

    The policy of a file, FILE.py:NAME, is loaded, which runs the file.
    """
    from schedgym.core.policy_files import typed_policy

    names = [part.strip() for part in re.split(r",(?![^()]*\))", text)]
    return [typed_policy(name, problem.name) for name in names]


def named_policies(text: str, problem: Problem, id: str) -> list[Any]:
    """The policies of a comma list, agents among them: the one that is shipped for the id, and files."""
    from schedgym.agents.search_policy import is_contender, make_contender

    names = policy_names(text, problem)
    return [make_contender(name, id) if is_contender(name) else name for name in names]


def policy_options(name: str, problem: Problem, given: Mapping[str, str]) -> dict[str, Any]:
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


def _parse_option(name: str, text: str, default: Any) -> Any:
    """Return a policy's option from its text, in the type of its default."""
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


# output --------------------------------------------------------------------------------------------


def say(text: str, stderr: bool = False) -> None:
    """Print a line as it is, however long."""
    make_console(stderr=stderr).print(one_line(text), soft_wrap=True)


def write_json(content: Mapping[str, Any], path: Path | None) -> None:
    """Write a result, if a file is named for it."""
    if path is not None:
        text = json.dumps(json_data(content), indent=1, allow_nan=False)
        with atomic_write(path) as stream:
            stream.write(text + "\n")


def write_new(files: Mapping[Path, str]) -> None:
    """Write files, none of which may be there yet, and say so."""
    for path in files:
        if path.exists():
            raise InvalidParameter(f"{path}: exists already")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as stream:
            stream.write(text)
        say(f"wrote {path}")


def fill_template(name: str, words: Mapping[str, str]) -> str:
    """The text of a template, with values in the place of its words, such as @NAME@."""
    text = (TEMPLATES / f"{name}.txt").read_text(encoding="utf-8")
    for word, value in words.items():
        text = text.replace(f"@{word}@", value)
    return text
