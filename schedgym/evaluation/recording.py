"""Moving pictures of an episode: GIF by Pillow, MP4 by moviepy."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.core.files import atomic_write, check_output
from schedgym.core.record import ScheduleRecord
from schedgym.errors import InvalidParameter
from schedgym.evaluation.episodes import make_env
from schedgym.evaluation.plan import acting_parameters, check_effects, resolve_id, resolve_policies
from schedgym.extras import require
from schedgym.playing import steps

MOVING = (".gif", ".mp4")
LAST = 2.0  # seconds for which the last picture stands
COLOURS = 255  # of a GIF: each job has two

Frame = npt.NDArray[np.uint8]


def record_episode(
    id: str,
    policy: Any,
    path: str | Path,
    *,
    seed: int = 0,
    seconds: float = 12.0,
    rate: float = 8.0,
    parameters: Mapping[str, Any] | None = None,
) -> ScheduleRecord:
    """Play an episode and write it as a moving picture with the policy's name on it.

    Args:
        id: environment id.
        policy: the name of a policy, or a policy.
        path: ``.gif`` (extra ``render``: Pillow) or ``.mp4`` (moviepy); replaced in one step.
        seed: of the environment and of the policy; episode 0 of it is played.
        seconds: length; of an episode with more decisions than pictures, evenly spaced ones are shown.
        rate: pictures a second.
        parameters: of the environment; ``{"workload": FILE}`` gives the jobs.

    Returns:
        the schedule of the episode.

    Raises:
        InvalidParameter: for another kind of file, or lengths that are not positive.
        gymnasium.error.DependencyNotInstalled: without what the file needs.
    """
    problem, id = resolve_id(id)
    ((label, policy),) = resolve_policies(problem, id, [policy], {}, {}, ()).acting.items()
    used = acting_parameters(problem, id, parameters, policy)
    check_effects(parameters or {}, [used])
    env, path = make_env(id, used), Path(path)
    check_output(path, MOVING)
    for what, value in (("seconds", seconds), ("rate", rate)):
        if not 0 < value < float("inf"):
            raise InvalidParameter(f"{what}: must be positive and finite, got {value}")
    require("PIL.Image" if path.suffix.lower() == ".gif" else "moviepy", "render")
    count = sum(1 for _ in steps(env, policy, seed=seed, label=label))
    chosen = set(np.linspace(0, count - 1, min(count, max(2, round(seconds * rate)))).astype(int).tolist())
    module = env.problem.module("render")
    caption, end = f"{label} · {env.id}", env.record().final_time
    frames: list[Frame] = [
        module.render_rgb_array(env.simulator, 0, caption, end)
        for number, _ in enumerate(steps(env, policy, seed=seed, label=label))
        if number in chosen
    ]
    write = _write_gif if path.suffix.lower() == ".gif" else _write_mp4
    with atomic_write(path, "wb") as stream:
        stream.write(write(_one_size(frames), rate))
    return env.record()


def _one_size(frames: list[Frame]) -> list[Frame]:
    """The frames without the rows below that are empty in all of them; sizes are even, as MP4 asks."""
    height = max(len(frame) for frame in frames)
    frames = [np.pad(f, ((0, height - len(f)), (0, 0), (0, 0)), constant_values=255) for f in frames]
    used = max(int(np.flatnonzero((frame < 250).any(axis=(1, 2))).max()) for frame in frames)
    return [frame[: min(height, used + 15) // 2 * 2] for frame in frames]


def _write_gif(frames: list[Frame], rate: float) -> bytes:
    image = require("PIL.Image", "render")
    # one palette for all, so that only what changes is stored
    sample = frames[:: max(1, len(frames) // 12)]
    method = image.Quantize.MAXCOVERAGE
    colours = image.fromarray(np.concatenate(sample)).quantize(COLOURS, method)
    pictures = [image.fromarray(f).quantize(palette=colours, dither=image.Dither.NONE) for f in frames]
    times = [max(20, round(1000 / rate))] * (len(frames) - 1) + [round(1000 * LAST)]
    stream = io.BytesIO()
    pictures[0].save(
        stream,
        "gif",
        save_all=True,
        append_images=pictures[1:],
        duration=times,
        loop=0,
        optimize=True,
    )
    return stream.getvalue()


def _write_mp4(frames: list[Frame], rate: float) -> bytes:
    clips = require("moviepy", "render")
    clip = clips.ImageSequenceClip([*frames, *[frames[-1]] * round(LAST * rate)], fps=rate)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "episode.mp4"
        clip.write_videofile(str(path), codec="libx264", audio=False, logger=None)
        return path.read_bytes()
