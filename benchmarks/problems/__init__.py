"""The cases of each problem."""
