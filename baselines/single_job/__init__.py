"""Policies of SingleJob."""
