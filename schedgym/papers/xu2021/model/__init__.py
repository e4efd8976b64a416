"""The model of xu2021: jobs on servers with and without memory, the OCORP family, other policies, optima.

Whole numbers and fractions give exact results, which the claims examine; with float prices the schedules are
those of the environment's kernels, bit for bit. Where the paper leaves something open, the choice is said.
"""

from schedgym.papers.xu2021.model import jobs, optima, policies, simulation, slot
from schedgym.papers.xu2021.model.jobs import *  # noqa: F403
from schedgym.papers.xu2021.model.optima import *  # noqa: F403
from schedgym.papers.xu2021.model.policies import *  # noqa: F403
from schedgym.papers.xu2021.model.simulation import *  # noqa: F403
from schedgym.papers.xu2021.model.slot import *  # noqa: F403

__all__ = [*jobs.__all__, *optima.__all__, *policies.__all__, *simulation.__all__, *slot.__all__]
