"""``schedgym bench`` and ``schedgym warmup``: measure speed, and compile ahead of time."""

from pathlib import Path

from schedgym.cli.common import command, say


@command("bench")
def bench(name: str | None = None, *, quick: bool = False, json: Path | None = None) -> None:
    """Measure how fast environments are here: steps per second, beside CartPole, and episodes.

    Options:
        name ([ID]): An environment id or a problem. Default: all of them.
        quick: Make a shorter, less exact run.
    """
    from schedgym.evaluation.bench import main

    main(name, quick=quick, json=json)


@command("warmup")
def warmup(names: list[str] | None = None, *, n_jobs: int = -1) -> None:
    """Compile the code of environments and baselines ahead of time.

    It is compiled once and kept; without this command the first step in an environment waits for it.

    Options:
        names ([ID]...): Environment ids. Default: all of them.
    """
    from schedgym.evaluation.warmup import warm_up

    for id, seconds in warm_up(*(names or []), n_jobs=n_jobs):
        say(f"{id}: compiled or loaded in {seconds:.1f} s")
