"""Baselines of FlowtimePacking."""
