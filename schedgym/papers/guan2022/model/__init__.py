"""The exact model of the thesis, in plain Python: what its claims examine and the kernels are held to.

Lists, dicts and loops, nothing cached from one instant to the next, and all sets of sites enumerated: for up
to about a dozen jobs and five sites.

* Tasks are ints; shares, levels and aggregates are ``Fraction``; nothing is rounded.
* Times keep the type they are given in: end = start + duration, and two instants are one only if they compare
  equal. With integers or fractions a whole simulation is exact.

Where the thesis leaves room, what is chosen is marked "Choice:".
"""

from schedgym.papers.guan2022.model import assignment, instances, metrics, sharing, simulation
from schedgym.papers.guan2022.model.assignment import *  # noqa: F403
from schedgym.papers.guan2022.model.instances import *  # noqa: F403
from schedgym.papers.guan2022.model.metrics import *  # noqa: F403
from schedgym.papers.guan2022.model.sharing import *  # noqa: F403
from schedgym.papers.guan2022.model.simulation import *  # noqa: F403

__all__ = [*assignment.__all__, *instances.__all__, *metrics.__all__, *sharing.__all__, *simulation.__all__]
