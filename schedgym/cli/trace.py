"""``schedgym trace``: inspect and fetch public traces."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from schedgym.cli.common import Json, application, check_output, make_table, say, write_json
from schedgym.evaluation.wording import four_digits, make_console, value_text

__all__ = ["fetch", "inspect"]

trace = typer.Typer(help="Inspect and fetch public cluster traces.", rich_markup_mode=None)
application.add_typer(trace, name="trace")


@trace.command("inspect")
def inspect(
    file: Annotated[Path, typer.Argument(help="The trace's file of tasks.")],
    nodes: Annotated[
        Path | None, typer.Option("--nodes", metavar="FILE", help="The trace's file of machines.")
    ] = None,
    on_error: Annotated[
        str,
        typer.Option(
            "--on-error", metavar="raise|skip", help="Stop at a malformed row, or leave such rows out."
        ),
    ] = "raise",
    json: Json = None,
) -> None:
    """Print a summary of a trace file."""
    from schedgym.traces import inspect_trace

    check_output(json)
    facts = inspect_trace(file, nodes=nodes, on_error=on_error)
    rows = [(key.replace("_", " "), _fact(value)) for key, value in facts.items()]
    make_console().print(make_table(file.name, ("fact", "value"), rows))
    write_json(facts, json)
    if json is not None:
        say(f"wrote {json}")


def _fact(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_fact(item)}" for name, item in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    return four_digits(value) if isinstance(value, float) else value_text(value)


@trace.command("fetch")
def fetch(name: Annotated[str, typer.Argument(help="The name of a public trace.")]) -> None:
    """Download a public trace into the cache, check its SHA-256, and print its path."""
    from schedgym.traces.fetch import fetch as download

    print(download(name))
