"""``schedgym claims`` and ``schedgym reproduce``: the papers examined."""

from pathlib import Path
from typing import Annotated

import typer

from schedgym.cli.common import Json, Processes, Seed, application, check_output

__all__ = ["claims", "reproduce"]


@application.command("claims")
def claims(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="guan2022/amf-envy, or guan2022; default: all."),
    ] = None,
    scale: Annotated[
        str, typer.Option("--scale", metavar="small|paper", help="Seconds a paper, or minutes.")
    ] = "small",
    seed: Seed = 0,
    json: Json = None,
) -> int:
    """Theorems and claims of the papers, each with its verdict from this run.

    The exit code is 1 if a verdict is not the one that is recorded.
    """
    check_output(json)
    from schedgym.papers.main import print_claims

    return print_claims(names or [], scale, seed, json)


@application.command("reproduce")
def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="guan2022/fig4.6, or guan2022; default: all."),
    ] = None,
    scale: Annotated[
        str, typer.Option("--scale", metavar="small|paper", help="Minutes for all, or the paper's sizes.")
    ] = "small",
    folder: Annotated[Path, typer.Option("-o", "--output", help="Folder for the files.")] = Path(
        "reproduced"
    ),
    seed: Seed = 0,
    n_jobs: Processes = -1,
    again: Annotated[bool, typer.Option("--again", help="Also what is there from an earlier run.")] = False,
    show: Annotated[bool, typer.Option("--list", help="Only list the figures.")] = False,
) -> int:
    """Figures of the papers: data, picture, and what is claimed beside what is measured.

    A run that was cut off goes on where it was. The exit code is 1 if one cannot be made.
    """
    from schedgym.papers.main import print_figures

    return print_figures(names or [], scale, folder, seed, n_jobs, again, show)
