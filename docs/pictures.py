"""Make the pictures of the README: an episode (docs/pictures/episode.gif) and a comparison (comparison.png).

And that of the page on advice: advice.png, of the Alibaba trace of 2025. Run in the checkout:
``python docs/pictures.py``. Needs the extras eval and render.
"""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import matplotlib
import numpy as np
from PIL import Image

import schedgym  # registers the ids
from schedgym.cli import main
from schedgym.evaluation.advice_page import draw
from schedgym.evaluation.canvas import STYLE, save_figure
from schedgym.traces.fetch import fetch

FOLDER = Path(__file__).parent / "pictures"
ID = "schedgym/FlowtimePacking-v0"
SLOTS = 50  # of the episode that are shown
MILLISECONDS = 180  # a slot
COLOURS = 64


def episode(path: Path) -> None:
    """OCORP on 60 jobs, slot by slot."""
    env = gym.make(ID, render_mode="rgb_array", jobs=60, view="allocation", window="all")
    policy = schedgym.make_policy("flowtime/ocorp")
    observation, _ = env.reset(seed=1)
    policy.reset(env.unwrapped.interface, np.random.default_rng(0))
    pictures = []
    for _ in range(SLOTS):
        observation, _, terminated, truncated, _ = env.step(policy(observation))
        pictures.append(np.asarray(env.render()))
        if terminated or truncated:
            break
    used = max(int(np.flatnonzero((picture < 250).any(axis=(1, 2))).max()) for picture in pictures)
    # one palette for all, so that only what changes is stored
    palette = Image.fromarray(np.concatenate(pictures)).quantize(COLOURS)
    frames = [
        Image.fromarray(picture[: used + 20]).quantize(palette=palette, dither=Image.Dither.NONE)
        for picture in pictures
    ]
    frames[0].save(
        path, save_all=True, append_images=frames[1:], duration=MILLISECONDS, loop=0, optimize=True
    )


def advice(path: Path) -> None:
    """The advice on a cluster by a public trace."""
    found = schedgym.advise(fetch("alibaba-2025"), servers=330, cpus=192, memory=1024)
    with matplotlib.rc_context(STYLE):
        save_figure(draw(found), path, small=True)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    advice(FOLDER / "advice.png")
    episode(FOLDER / "episode.gif")
    arguments = ["compare", ID, "--agents", "pretrained", "--episodes", "100", "--seed", "424242"]
    raise SystemExit(main([*arguments, "--n-jobs", "2", "--plot", str(FOLDER / "comparison.png")]))
