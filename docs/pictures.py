"""Make the pictures of the README and of docs/how-to in docs/pictures.

An episode (episode.gif), a schedule (schedule.svg), comparisons, wide (comparison.svg) and as narrow as a
paper's column (column.svg), the advice on a cluster by a public trace (advice.svg) with its schedules
(advice-schedule.svg), and a report (report.png). Run in the checkout: ``python docs/pictures.py [NAME ...]``
makes all of them, or some, e.g. "report". Needs the extras eval, render, report and agents, and for the
report the browser chromium. SVG pictures are light or dark as their reader's screen is.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import schedgym  # registers the ids
from schedgym.advice.page import draw, draw_schedule
from schedgym.cli import main
from schedgym.evaluation.canvas import save_figure
from schedgym.traces.fetch import fetch

FOLDER = Path(__file__).parent / "pictures"
ID = "schedgym/FlowtimePacking-v0"
CROWDED = {"jobs": 80, "load": 1.5}  # a queue that fills the picture
COMPARE = ["compare", ID, "--episodes", "100", "--seed", "424242", "--n-jobs", "2"]

SWEEP = f"""
name: load
seeds: [424242]
episodes: 20
experiments:
  - id: {ID}
    parameters: {{load: [0.6, 0.9, 1.2]}}
    policies: [ocorp, srvf, drf, srpt, fifo]
"""


def advice() -> None:
    """The advice on a cluster by a public trace."""
    found = schedgym.advise(fetch("alibaba-2025"), servers=330, cpus=192, memory=1024)
    save_figure(draw(found), FOLDER / "advice.svg")


def example() -> None:
    """The schedule under first come first served of the log that docs/how-to/advise.md makes."""
    text = (FOLDER.parent / "how-to" / "advise.md").read_text(encoding="utf-8")
    made: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        exec(text.partition("```python\n")[2].partition("```")[0], made)
    found = schedgym.advise(made["jobs"], servers=2, cpus=16, memory=64, agent=False)
    save_figure(draw_schedule(found, "fcfs"), FOLDER / "advice-schedule.svg")


def episode() -> None:
    """An episode, and its schedule."""
    record = schedgym.record_episode(ID, "ocorp", FOLDER / "episode.gif", rate=5, parameters=CROWDED)
    save_figure(schedgym.plot_schedule(record, policy="ocorp"), FOLDER / "schedule.svg")


def column() -> None:
    """A comparison for the column of a paper."""
    narrow = ["--policies", "ocorp,srvf,drf,srpt,fifo", "--width", "3.5in", "--no-title"]
    main([*COMPARE, *narrow, "--plot", str(FOLDER / "column.svg")])


def comparison() -> None:
    """All baselines and the agent."""
    main([*COMPARE, "--agents", "pretrained", "--plot", str(FOLDER / "comparison.svg")])


def report() -> None:
    """The page of a problem in a report, its upper part, as a browser shows it."""
    with tempfile.TemporaryDirectory() as folder:
        spec, page = Path(folder, "load.yaml"), Path(folder, "load.html")
        spec.write_text(SWEEP, encoding="utf-8")
        main(["sweep", str(spec), "--n-jobs", "2"])
        main(["report", str(spec.with_suffix(".db")), "-o", str(page)])
        browser = shutil.which("chromium")
        if browser is None:
            raise SystemExit("report: needs the browser chromium")
        looks = ["--headless", "--no-sandbox", "--hide-scrollbars", "--window-size=1100,1250"]
        looks += [f"--user-data-dir={folder}/profile", "--virtual-time-budget=8000"]
        shot = f"--screenshot={FOLDER / 'report.png'}"
        tab = f"{page.as_uri()}#FlowtimePacking"
        subprocess.run([browser, *looks, shot, tab], check=True, capture_output=True)


PICTURES = {one.__name__: one for one in (advice, example, episode, column, comparison, report)}

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in sys.argv[1:] or PICTURES:
        PICTURES[name]()
