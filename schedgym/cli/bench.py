"""``schedgym bench``: measure the speed of environments and policies."""

from typing import Annotated

import typer

from schedgym.cli.common import Json, application, check_output

__all__ = ["bench"]


@application.command("bench")
def bench(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="An environment id or a problem. Default: all of them."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Make a shorter, less exact run.")] = False,
    growth: Annotated[
        bool,
        typer.Option("--growth", help="Measure how the time of an episode grows with jobs and servers."),
    ] = False,
    json: Json = None,
) -> None:
    """Measure steps per second and their ratio to CartPole, or how times grow with size."""
    check_output(json)
    if growth:
        from schedgym.evaluation.growth import main
    else:
        from schedgym.evaluation.bench import main
    main(name, quick=quick, json=json)
