"""The exact model of the thesis, in plain Python: what its claims examine and the kernels are held to.

Lists, dicts and loops, nothing cached from one instant to the next, and all sets of sites enumerated: for up
to about a dozen jobs and five sites.

* Tasks are ints; shares, levels and aggregates are ``Fraction``; nothing is rounded.
* Times keep the type they are given in: end = start + duration, and two instants are one only if they compare
  equal. With integers or fractions a whole simulation is exact.

Where the thesis leaves room, what is chosen is marked "Choice:".
"""

from schedgym.papers.guan2022.model.assignment import (
    ASSIGN_POLICIES,
    assign_policy,
    associated,
    balance,
    greedy,
    per_site,
    swag_plan,
    total_load,
)
from schedgym.papers.guan2022.model.instances import (
    Counts,
    Decision,
    Instance,
    Job,
    Number,
    Outcome,
    Shares,
    Sites,
    View,
    make_instance,
)
from schedgym.papers.guan2022.model.metrics import (
    PERCENTILES,
    deviation,
    job_bound,
    lower_bounds,
    metrics_assign,
    metrics_fair,
    percentile,
    pooled_srpt,
    sharing_violations,
    weighted_percentile,
)
from schedgym.papers.guan2022.model.sharing import (
    FAIR_POLICIES,
    Problem,
    aggregates_of,
    allocation,
    decision_problem,
    fair_policy,
    is_feasible,
    isolated_shares,
    least_aggregates,
    max_min,
    most_beside,
    optimise,
    rank_function,
    sharing_problem,
    useful_range,
    water_fill,
)
from schedgym.papers.guan2022.model.simulation import simulate_assign, simulate_fair

__all__ = [
    "ASSIGN_POLICIES",
    "FAIR_POLICIES",
    "PERCENTILES",
    "Counts",
    "Decision",
    "Instance",
    "Job",
    "Number",
    "Outcome",
    "Problem",
    "Shares",
    "Sites",
    "View",
    "aggregates_of",
    "allocation",
    "assign_policy",
    "associated",
    "balance",
    "decision_problem",
    "deviation",
    "fair_policy",
    "greedy",
    "is_feasible",
    "isolated_shares",
    "job_bound",
    "least_aggregates",
    "lower_bounds",
    "make_instance",
    "max_min",
    "metrics_assign",
    "metrics_fair",
    "most_beside",
    "optimise",
    "per_site",
    "percentile",
    "pooled_srpt",
    "rank_function",
    "sharing_problem",
    "sharing_violations",
    "simulate_assign",
    "simulate_fair",
    "swag_plan",
    "total_load",
    "useful_range",
    "water_fill",
    "weighted_percentile",
]
