"""``schedgym bench`` and ``schedgym warmup``: measure speed, and compile ahead of time."""

from typing import Annotated

import typer

from schedgym.cli.common import Json, Processes, application, say
from schedgym.core.files import check_output
from schedgym.errors import InvalidParameter, UnknownName

__all__ = ["bench", "warmup"]

DEVICES = ("cpu", "cuda")


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
    training: Annotated[
        bool,
        typer.Option(
            "--training", help="Measure the trained steps per CPU second of each algorithm, side by side."
        ),
    ] = False,
    device: Annotated[
        str,
        typer.Option(
            help="cpu, or cuda to measure environments and PPO on an NVIDIA GPU, and one CPU core beside it "
            "(experimental); with --training only PPO."
        ),
    ] = "cpu",
    json: Json = None,
) -> None:
    """Measure steps per second and their ratio to CartPole, how times grow with size, or trainings."""
    check_output(json)
    if growth and training:
        raise InvalidParameter("--growth and --training exclude each other")
    if device not in DEVICES:
        raise UnknownName("device", device, DEVICES)
    if device == "cuda":
        if growth:
            raise InvalidParameter("--growth is measured on the CPU: leave --device out")
        from schedgym.evaluation.gpu import main as measure

        measure(name, quick=quick, json=json, training=training)
        return
    if training:
        from schedgym.evaluation.trainers import main
    elif growth:
        from schedgym.evaluation.growth import main  # type: ignore[assignment]
    else:
        from schedgym.evaluation.bench import main  # type: ignore[assignment]
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
