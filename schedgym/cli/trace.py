"""``schedgym trace``: list the formats, inspect and fetch traces."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from schedgym.cli.common import application, command, say, write_json
from schedgym.evaluation.wording import four_digits, make_console, make_table, value_text

trace = typer.Typer(help="List, inspect and fetch cluster traces.", rich_markup_mode=None)
application.add_typer(trace, name="trace")


@command("list", of=trace)
def list_formats(*, json: Path | None = None) -> None:
    """List the formats of traces: what was published, its licence, and which environments it feeds."""
    from schedgym.traces import feeds, formats

    found = formats().values()
    ids = {format.name: feeds(format) for format in found}
    rows = [
        (
            format.name,
            "" if format.jobs is None else f"{format.jobs:,}",
            format.span,
            format.licence or "that of your log",
            ", ".join(id.removeprefix("schedgym/") for id in ids[format.name]),
        )
        for format in found
    ]
    keys = ("name", "help", "jobs", "span", "licence", "address", "cite", "notes", "assumes")
    content = [
        {key: getattr(format, key) for key in keys}
        | {"feeds": ids[format.name], "files": {name: vars(file) for name, file in format.files.items()}}
        for format in found
    ]
    write_json({"formats": content}, json)
    console = make_console()
    headings = ("format", "jobs", "span", "licence", "feeds")
    options: dict[str, Any] = {"format": {"no_wrap": True}, "jobs": {"justify": "right", "no_wrap": True}}
    console.print(make_table("", headings, rows, **options))
    for format in found:
        if format.assumes:
            say(f"{format.name} assumes {format.assumes}; it is read only if --format names it")
    names = [
        name + ("" if one.sha256 else " (unverified)") for own in found for name, one in own.files.items()
    ]
    say(f"schedgym trace fetch: {', '.join(names)}")
    if json is not None:
        say(f"wrote {json}")


@command("inspect", of=trace)
def inspect(
    file: Path,
    *,
    nodes: Path | None = None,
    format: str | None = None,
    on_error: str = "raise",
    pool: bool | None = None,
    json: Path | None = None,
) -> None:
    """Print a summary of a trace file.

    Options:
        file: The trace's file of tasks.
        nodes: The trace's file of machines.
        format (NAME|FILE): Its format: a name that `trace list` shows, or a YAML file. Default: by its first
            line.
    """
    from schedgym.traces import inspect_trace

    facts = inspect_trace(file, nodes=nodes, on_error=on_error, format=format, pool=pool)
    write_json(facts, json)
    rows = [(key.replace("_", " "), _fact(value)) for key, value in facts.items()]
    make_console().print(make_table(file.name, ("fact", "value"), rows))
    if json is not None:
        say(f"wrote {json}")


def _fact(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_fact(item)}" for name, item in value.items()) or "none"
    if isinstance(value, list):
        return "; ".join(str(item) for item in value) or "none"
    return four_digits(value) if isinstance(value, float) else value_text(value)


@command("fetch", of=trace)
def fetch(name: str) -> None:
    """Download a public trace into the cache, check its SHA-256, and print its path.

    Its licence, and what its publisher asks to cite, go to standard error.

    Options:
        name: The name of a public trace.
    """
    from schedgym.traces import formats
    from schedgym.traces.fetch import fetch as download

    print(download(name))
    for format in formats().values():
        if name in format.files:
            known = format.files[name]
            say(f"{known.help}; licence: {known.licence or format.licence}; {format.address}", stderr=True)
            if format.cite:
                say(f"to cite: {format.cite}", stderr=True)
            if not known.sha256:
                say("unverified: its SHA-256 is not known", stderr=True)
