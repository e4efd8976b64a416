"""``python -m benchmarks WHAT [ID]``: print measurements, and write them as JSON."""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import Any

from gymnasium.error import Error as GymnasiumError

from schedgym.errors import SchedgymError

#: what is measured, and by which module
MEASURED = {
    "speed": "steps per second and seconds of episodes, in all cases that are listed",
    "growth": "how the time of an episode grows with jobs and servers",
    "training": "what each algorithm reaches in some seconds of CPU, and its steps in each of them",
    "search": "what searches of the shipped agents at decisions gain, and cost",
    "board": "what it costs that candidates of the board decide in a process of their own",
    "transfer": "what agents lose where a trace or a generator is no part of their training",
    "libraries": "whether the libraries of docs/libraries play every id",
    "gpu": "environments and PPO on an NVIDIA GPU, and on one CPU core beside it",
}


def main(arguments: list[str] | None = None) -> int:
    """Measure what the arguments say; return the exit status."""
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument("what", choices=MEASURED, help="; ".join(f"{k}: {v}" for k, v in MEASURED.items()))
    parser.add_argument("id", nargs="?", help="an environment id or a problem; left out: all of them")
    parser.add_argument("--quick", action="store_true", help="a shorter, less exact run")
    parser.add_argument("--json", metavar="FILE", help="write the results to this file")
    parser.add_argument("--only-training", action="store_true", help="of gpu: PPO, no environments")
    parser.add_argument("--seconds", type=float, help="of training: of CPU, for each; left out: 300")
    parser.add_argument("--repetitions", type=int, help="of training: trainings of each; left out: 3")
    asked = parser.parse_args(arguments)
    more: dict[str, Any] = {"training": True} if asked.only_training else {}
    if more and asked.what != "gpu":
        parser.error("--only-training is an option of gpu")
    for name in ("seconds", "repetitions"):
        if getattr(asked, name) is not None:
            more[name] = getattr(asked, name)
            if asked.what != "training":
                parser.error(f"--{name} is an option of training")
    try:
        importlib.import_module(f"benchmarks.{asked.what}").main(asked.id, asked.quick, asked.json, **more)
    except (SchedgymError, GymnasiumError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
