"""``schedgym bench``: how fast it is."""

from typing import Annotated

import typer

from schedgym.cli.common import Json, application, check_output

__all__ = ["bench"]


@application.command("bench")
def bench(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="An environment id or a problem; default: all."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A shorter run.")] = False,
    growth: Annotated[
        bool, typer.Option("--growth", help="How episodes' times grow with jobs and servers.")
    ] = False,
    json: Json = None,
) -> None:
    """Steps per second, and their ratio to CartPole; or how times grow with size."""
    check_output(json)
    if growth:
        from schedgym.evaluation.growth import main
    else:
        from schedgym.evaluation.bench import main
    main(name, quick=quick, json=json)
