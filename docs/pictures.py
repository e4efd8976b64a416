"""Make the pictures of the README and of docs/how-to/see.md in docs/pictures.

An episode (episode.gif), a schedule (schedule.png), comparisons, wide (comparison.png) and as narrow as a
paper's column (column.png), and the advice on a cluster by a public trace (advice.png). Run in the checkout:
``python docs/pictures.py``. Needs the extras eval, render and agents.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

import schedgym  # registers the ids
from schedgym.cli import main
from schedgym.evaluation.advice_page import draw
from schedgym.evaluation.canvas import STYLE, save_figure
from schedgym.traces.fetch import fetch

FOLDER = Path(__file__).parent / "pictures"
ID = "schedgym/FlowtimePacking-v0"
CROWDED = {"jobs": 80, "load": 1.5}  # a queue that fills the picture


def advice(path: Path) -> None:
    """The advice on a cluster by a public trace."""
    found = schedgym.advise(fetch("alibaba-2025"), servers=330, cpus=192, memory=1024)
    with matplotlib.rc_context(STYLE):
        save_figure(draw(found), path, small=True)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    advice(FOLDER / "advice.png")
    record = schedgym.record_episode(ID, "ocorp", FOLDER / "episode.gif", rate=5, parameters=CROWDED)
    save_figure(schedgym.plot_schedule(record, policy="ocorp"), FOLDER / "schedule.png", small=True)
    compare = ["compare", ID, "--episodes", "100", "--seed", "424242", "--n-jobs", "2"]
    narrow = ["--policies", "ocorp,srvf,drf,srpt,fifo", "--width", "3.5in", "--no-title"]
    main([*compare, *narrow, "--plot", str(FOLDER / "column.png")])
    wide = ["--agents", "pretrained", "--plot", str(FOLDER / "comparison.png")]
    raise SystemExit(main([*compare, *wide]))
