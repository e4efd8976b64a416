"""Make the pictures of the README and of docs/how-to/see.md in docs/pictures.

An episode (episode.gif), a schedule (schedule.png), and comparisons, wide (comparison.png) and as narrow as a
paper's column (column.png). Run in the checkout: ``python docs/pictures.py``. Needs the extras eval, render
and agents.
"""

from __future__ import annotations

from pathlib import Path

import schedgym  # registers the ids
from schedgym.cli import main
from schedgym.evaluation.canvas import save_figure

FOLDER = Path(__file__).parent / "pictures"
ID = "schedgym/FlowtimePacking-v0"
CROWDED = {"jobs": 80, "load": 1.5}  # a queue that fills the picture

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    record = schedgym.record_episode(ID, "ocorp", FOLDER / "episode.gif", rate=5, parameters=CROWDED)
    save_figure(schedgym.plot_schedule(record, policy="ocorp"), FOLDER / "schedule.png", small=True)
    compare = ["compare", ID, "--episodes", "100", "--seed", "424242", "--n-jobs", "2"]
    narrow = ["--policies", "ocorp,srvf,drf,srpt,fifo", "--width", "3.5in", "--no-title"]
    main([*compare, *narrow, "--plot", str(FOLDER / "column.png")])
    wide = ["--agents", "pretrained", "--plot", str(FOLDER / "comparison.png")]
    raise SystemExit(main([*compare, *wide]))
