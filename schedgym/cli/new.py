"""``schedgym new``: write a working skeleton of a problem, a policy or a trace format, with its test."""

import contextlib
import importlib.util
import keyword
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from schedgym.cli.common import TEMPLATES, command, fill_template, say, write_new
from schedgym.core.policy import resolve_policy_name
from schedgym.core.problem import get_problem
from schedgym.errors import InvalidParameter, UnknownName
from schedgym.traces import find_format

#: kind -> the name that its templates have
SAMPLES = {"problem": "one-machine", "policy": "smallest-first", "trace": "mine"}
#: kind -> group -> entry points of its package; SNAKE is the name of the package
ENTRIES = {
    "problem": {"schedgym.problems": "SNAKE.problem:PROBLEM", "schedgym.policies": "SNAKE.baselines.orders"},
    "policy": {"schedgym.policies": "SNAKE.policy"},
    "trace": {"schedgym.traces": "SNAKE:FORMAT"},
}
#: kind -> what finds one by its name
FINDERS: Mapping[str, Callable[[str], object]] = {
    "problem": get_problem,
    "policy": partial(resolve_policy_name, problem="queue-delay"),
    "trace": find_format,
}
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@command("new")
def new(kind: str, name: str, *, package: bool = False) -> None:
    """Write a working skeleton with its test: a problem, a policy or a trace format.

    In a checkout of schedgym the files go to their places; elsewhere into a folder that is a package, which
    schedgym finds once it is installed (pip install ./NAME).

    Options:
        kind: problem, policy (of QueueDelay) or trace.
        name: Its name, in small letters with hyphens, e.g. my-problem.
        package: Write a package of its own, also inside a checkout.
    """
    if kind not in SAMPLES:
        raise UnknownName("kind", kind, SAMPLES)
    if NAME.fullmatch(name) is None:
        raise InvalidParameter(f"name: must be small letters, digits and hyphens, got {name!r}")
    snake = _snake(name)
    for form in (name, f"schedgym/{_camel(name)}-v0"):
        with contextlib.suppress(UnknownName):  # two of one name would be refused wherever both are installed
            FINDERS[kind](form)
            raise InvalidParameter(f"name: there is a {kind} {form!r} already")
    for form in (snake, _camel(name)):
        if keyword.iskeyword(form):
            raise InvalidParameter(f"name: {form} is a keyword of Python: take another")
    inside = not package and Path("schedgym/problems").is_dir() and Path("baselines").is_dir()
    if not inside and importlib.util.find_spec(snake) is not None:
        raise InvalidParameter(f"name: there is a module {snake!r} already")
    files = _in_checkout(kind, name) if inside else _as_package(kind, name)
    write_new(files)
    test = next(path for path in files if path.name.startswith("test_"))
    say(f"try: {'' if inside else f'pip install -e ./{name} && '}python -m pytest {test}")


def _filled(kind: str, name: str, modules: Mapping[str, str]) -> dict[str, str]:
    """Template -> its text under the new name, and with other names of modules."""
    folder, sample = TEMPLATES / kind, SAMPLES[kind]
    spelled = {form(sample): form(name) for form in (str, _snake, _camel)}
    if kind == "trace":  # a word that means other things, too
        spelled = {"name: mine": f"name: {name}", 'format="mine"': f'format="{name}"'}
        spelled["format mine"] = f"format {name}"
    found = {}
    for path in sorted(folder.rglob("*.txt")):
        text = path.read_text(encoding="utf-8")
        for old, new in (*modules.items(), *spelled.items()):
            text = text.replace(old, new)
        found[path.relative_to(folder).as_posix().removesuffix(".txt")] = text
    return found


def _snake(name: str) -> str:
    return name.replace("-", "_")


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("-"))


def _in_checkout(kind: str, name: str) -> dict[Path, str]:
    """Path -> content, where the checkout has such files."""
    snake = _snake(name)
    places = {
        "problem": {
            "test.py": f"tests/{snake}/test_{snake}.py",
            "baselines/": f"baselines/{snake}/",
            "": f"schedgym/problems/{snake}/",
        },
        "policy": {
            "test.py": f"tests/queue_delay/test_{snake}.py",
            "policy.py": f"baselines/queue_delay/{snake}.py",
        },
        "trace": {
            "test.py": f"tests/traces/test_{snake}.py",
            "format.yaml": f"schedgym/traces/formats/{name}.yaml",
        },
    }[kind]
    files = {_place(path, places): text for path, text in _filled(kind, name, {}).items()}
    if kind == "problem":
        files[Path(f"tests/{snake}/__init__.py")] = ""
    return files


def _as_package(kind: str, name: str) -> dict[Path, str]:
    """Path -> content of a package of its own."""
    snake = _snake(name)
    places = {"test.py": f"{name}/tests/test_{snake}.py", "": f"{name}/{snake}/"}
    modules = {"schedgym.problems.one_machine": snake, "schedgym.baselines.one_machine": f"{snake}.baselines"}
    files = {_place(path, places): text for path, text in _filled(kind, name, modules).items()}
    entries = "\n\n".join(
        f'[project.entry-points."{group}"]\n{snake} = "{value.replace("SNAKE", snake)}"'
        for group, value in ENTRIES[kind].items()
    )
    words = {"NAME": name, "SNAKE": snake, "ENTRIES": entries}
    files[Path(f"{name}/pyproject.toml")] = fill_template("package/pyproject.toml", words)
    if kind != "problem":
        files[Path(f"{name}/{snake}/__init__.py")] = fill_template(f"package/{kind}.py", words)
    return files


def _place(path: str, places: Mapping[str, str]) -> Path:
    begin = next(begin for begin in places if path.startswith(begin))
    return Path(places[begin] + path.removeprefix(begin))
