"""Measurements for developers: speed in detail, growth with size, trainings, GPUs. Not installed."""
