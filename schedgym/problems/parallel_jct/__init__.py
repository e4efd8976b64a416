"""ParallelJCT: jobs of independent tasks over time on a tree of servers, under energy caps (paper 001)."""
