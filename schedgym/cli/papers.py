"""``schedgym claims`` and ``schedgym reproduce``: check the papers' claims, and make their figures."""

from pathlib import Path

from schedgym.cli.common import command


@command("claims")
def claims(
    names: list[str] | None = None, *, scale: str = "small", seed: int = 0, json: Path | None = None
) -> int:
    """Check theorems and claims of the papers, and print the verdict on each.

    The exit code is 1 if a verdict is not the one that is recorded.

    Options:
        names ([NAME]...): A claim (guan2022/amf-envy) or a paper (guan2022). Default: all claims.
        scale (small|paper): The size of the instances; all claims take more than an hour at the small one.
    """
    from schedgym.papers.main import print_claims

    return print_claims(names or [], scale, seed, json)


@command("reproduce")
def reproduce(
    names: list[str] | None = None,
    *,
    scale: str = "small",
    output: Path = Path("reproduced"),
    seed: int = 0,
    n_jobs: int = -1,
    again: bool = False,
    all_readings: bool = False,
    list: bool = False,
) -> int:
    """Reproduce figures of the papers: the data, the picture, and claims beside measurements.

    A run that was cut off is continued by the next. The exit code is 1 if a figure cannot be made.

    Options:
        names ([NAME]...): A figure (guan2022/fig4.6) or a paper (guan2022). Default: all figures.
        scale (small|paper): The size of the instances: small takes minutes a figure, and hours for all;
            paper is the paper's size.
        output (FOLDER): Write the files to this folder.
        again: Also make the figures that an earlier run has made.
        all_readings: Run all readings at the paper's size, too, each of which takes as long again, but for
            some that would take hours; the small scale always has them all.
        list: Only list the figures.
    """
    from schedgym.papers.main import print_figures

    return print_figures(names or [], scale, output, seed, n_jobs, again, list, all_readings)
