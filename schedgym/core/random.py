"""Named, independent random streams: (seed, episode, stream) -> numbers, compiled.

Every random quantity of an episode is drawn when the episode starts, from a stream of its own, so that
policies compared on a seed see the same jobs, and a change in one stream leaves the others as they were.
The generator is SplitMix64 (Steele, Lea, Flood 2014): one 64-bit word of state, so that a compiled kernel
can start episodes of thousands of environments without calling Python.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from schedgym.core.jit import helper

EVALUATION_SEEDS = 2**40  # evaluations take seeds below, trainings and validations those from here
VALIDATION_SEED = 2**41  # its episodes choose between the weights of an agent, and a baseline's options
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
S11, S27, S30, S31 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31)


def root_seed(seed: int) -> np.uint64:
    """Spread a user's seed (any non-negative integer) over 64 bits."""
    return np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]


def root_seeds(seeds: list[int]) -> npt.NDArray[np.uint64]:
    """:func:`root_seed` of each element; uint64 [len(seeds)]."""
    return np.array([root_seed(seed) for seed in seeds], dtype=np.uint64)


@helper
def mix(word: np.uint64) -> np.uint64:
    """SplitMix64's output function: a bijection that flips half the bits on average."""
    word = (word ^ (word >> S30)) * MIX_1
    word = (word ^ (word >> S27)) * MIX_2
    return word ^ (word >> S31)


@helper
def stream(seed: np.uint64, episode: int, name: int) -> np.uint64:
    """State of the stream numbered ``name`` in an episode of an environment."""
    return mix(mix(mix(seed + GOLDEN) + np.uint64(episode)) + GOLDEN * np.uint64(name + 1))


@helper
def substream(state: np.uint64, job: int) -> np.uint64:
    """State of a job's own stream: draws for one job shift nothing for the others."""
    return mix(state + GOLDEN * np.uint64(job + 1))


@helper
def uniform(state: np.uint64) -> tuple[np.uint64, float]:
    """The next state and a number in [0, 1) with 53 random bits."""
    state = state + GOLDEN
    return state, float(mix(state) >> S11) * 2.0**-53


@helper
def exponential(state: np.uint64) -> tuple[np.uint64, float]:
    """The next state and an exponential variate with mean 1."""
    state, u = uniform(state)
    return state, -math.log1p(-u)


@helper
def normal_pair(state: np.uint64) -> tuple[np.uint64, float, float]:
    """The next state and two independent standard normals (Box and Muller 1958)."""
    state, u = uniform(state)
    state, v = uniform(state)
    radius = math.sqrt(-2.0 * math.log1p(-u))
    angle = 2.0 * math.pi * v
    return state, radius * math.cos(angle), radius * math.sin(angle)
