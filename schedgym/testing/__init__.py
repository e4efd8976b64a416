"""Checks that every problem and every policy must pass, for pytest or a plain script.

    from schedgym.testing import all_views, check_policy, check_problem, check_vector_parity

    check_problem("schedgym/QueueDelay-v0", view="pick", tasks=20)
    check_vector_parity("schedgym/QueueDelay-v0", view="pick", tasks=20)
    check_policy("queue-delay/bf-exec", tasks=20)

Each raises AssertionError that says what was expected and what was met.
"""

from schedgym.testing.checks import (
    ALLOWED_WARNINGS,
    all_views,
    check_policy,
    check_problem,
    check_vector_parity,
    difference,
    infeasible_action,
    malformed_actions,
    policy_parameters,
    sample_action,
)

__all__ = [
    "ALLOWED_WARNINGS",
    "all_views",
    "check_policy",
    "check_problem",
    "check_vector_parity",
    "difference",
    "infeasible_action",
    "malformed_actions",
    "policy_parameters",
    "sample_action",
]
