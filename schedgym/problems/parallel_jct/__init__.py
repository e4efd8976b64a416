"""ParallelJCT: jobs of independent tasks over time on a tree of servers, under energy caps (shi2017)."""
