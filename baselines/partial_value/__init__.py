"""Policies of PartialValue."""
