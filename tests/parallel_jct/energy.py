"""The energy caps of ParallelJCT in plain Python, to be compared with the compiled ones."""

from __future__ import annotations

import math

GOLDEN = 0x9E3779B97F4A7C15
MASK = 2**64 - 1


def mixed(word: int) -> int:
    word &= MASK
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & MASK
    return word ^ (word >> 31)


def energy_draw(seed: int, job: int, round: int) -> float:
    """Of a round at a tick (0, 1, ...), or between ticks (-1, -2, ...)."""
    number = round if round >= 0 else 2**62 - round
    state = mixed(mixed(mixed(seed + GOLDEN) + job) + GOLDEN * (number + 1))
    return (mixed(state + GOLDEN) >> 11) * 2.0**-53


def cap_of_round(
    total_load: float, least_energy: float, ratio: float, seed: int, job: int, round: int
) -> tuple[float, bool]:
    """The cap, and whether it is the granted least energy; a ratio that is nan is drawn."""
    drawn = math.isnan(ratio)
    if least_energy > (1.1 if drawn else ratio) * total_load:
        return least_energy, True
    if drawn:
        ratio = 1.0 + 0.1 * energy_draw(seed, job, round)
    return ratio * total_load, False
