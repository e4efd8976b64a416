"""``schedgym bench`` and ``schedgym warmup``: measure speed, and compile ahead of time."""

from typing import Annotated

import typer

from schedgym.cli.common import Json, Processes, application, say
from schedgym.core.files import check_output


@application.command("bench")
def bench(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="An environment id or a problem. Default: all of them."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Make a shorter, less exact run.")] = False,
    json: Json = None,
) -> None:
    """Measure how fast environments are here: steps per second, beside CartPole, and episodes."""
    check_output(json)
    from schedgym.evaluation.bench import main

    main(name, quick=quick, json=json)


@application.command("warmup")
def warmup(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Environment ids. Default: all of them.")
    ] = None,
    n_jobs: Processes = -1,
) -> None:
    """Compile the code of environments and baselines ahead of time.

    It is compiled once and kept; without this command the first step in an environment waits for it.
    """
    from schedgym.evaluation.warmup import warm_up

    for id, seconds in warm_up(*(names or []), n_jobs=n_jobs):
        say(f"{id}: compiled or loaded in {seconds:.1f} s")
