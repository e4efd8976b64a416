"""Policies of ParallelJCT."""
