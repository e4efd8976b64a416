"""``schedgym claims`` and ``schedgym reproduce``: check the papers' claims, and make their figures."""

from pathlib import Path
from typing import Annotated

import typer

from schedgym.cli.common import Json, Processes, Seed, application
from schedgym.core.files import check_output


@application.command("claims")
def claims(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="A claim (guan2022/amf-envy) or a paper (guan2022). Default: all claims.",
        ),
    ] = None,
    scale: Annotated[
        str,
        typer.Option(
            "--scale",
            metavar="small|paper",
            help="The size of the instances: small takes seconds per paper, paper takes minutes.",
        ),
    ] = "small",
    seed: Seed = 0,
    json: Json = None,
) -> int:
    """Check theorems and claims of the papers, and print the verdict on each.

    The exit code is 1 if a verdict is not the one that is recorded.
    """
    check_output(json)
    from schedgym.papers.main import print_claims

    return print_claims(names or [], scale, seed, json)


@application.command("reproduce")
def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="A figure (guan2022/fig4.6) or a paper (guan2022). Default: all figures.",
        ),
    ] = None,
    scale: Annotated[
        str,
        typer.Option(
            "--scale",
            metavar="small|paper",
            help="The size of the instances: small takes minutes for all figures, paper is the paper's size.",
        ),
    ] = "small",
    folder: Annotated[Path, typer.Option("-o", "--output", help="Write the files to this folder.")] = Path(
        "reproduced"
    ),
    seed: Seed = 0,
    n_jobs: Processes = -1,
    again: Annotated[
        bool, typer.Option("--again", help="Also make the figures that an earlier run has made.")
    ] = False,
    show: Annotated[bool, typer.Option("--list", help="Only list the figures.")] = False,
) -> int:
    """Reproduce figures of the papers: the data, the picture, and claims beside measurements.

    A run that was cut off is continued by the next. The exit code is 1 if a figure cannot be made.
    """
    from schedgym.papers.main import print_figures

    return print_figures(names or [], scale, folder, seed, n_jobs, again, show)
