"""The exact model of shi2017: one job (sections 3, 4 and 6.1.3), and jobs over time (section 5)."""

from schedgym.papers.shi2017.model import one_job, online
from schedgym.papers.shi2017.model.one_job import *  # noqa: F403
from schedgym.papers.shi2017.model.online import *  # noqa: F403

__all__ = [*one_job.__all__, *online.__all__]
