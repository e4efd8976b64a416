"""The model of zheng2016: jobs with partial values, slot rules for divisible and for whole tasks, optima.

Whole numbers and fractions give exact results, which the claims examine; with floats the environment's
kernels are held to it. Ties that no rule of the paper mentions go to the lower id, then to the lower task.
Whole tasks may overfill a resource by 1e-9; tasks that can be cut aim at a load of exactly 1.
"""

from schedgym.papers.zheng2016.model import divisible_tasks, jobs, whole_tasks
from schedgym.papers.zheng2016.model import policies as named
from schedgym.papers.zheng2016.model.divisible_tasks import *  # noqa: F403
from schedgym.papers.zheng2016.model.jobs import *  # noqa: F403
from schedgym.papers.zheng2016.model.policies import *  # noqa: F403
from schedgym.papers.zheng2016.model.whole_tasks import *  # noqa: F403

__all__ = [*divisible_tasks.__all__, *jobs.__all__, *named.__all__, *whole_tasks.__all__]
