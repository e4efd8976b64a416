"""Baselines of QueueDelay."""
