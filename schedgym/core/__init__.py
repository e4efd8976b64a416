"""Foundations that every problem shares: numpy and numba only, never gymnasium."""
