"""SingleJob: place and size the tasks of one job on a tree of servers under an energy cap (shi2017)."""
