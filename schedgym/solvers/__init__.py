"""Shared exact solvers: flows, water-filling and the linear programs that they are compared with."""
