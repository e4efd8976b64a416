"""Advice from a log: what it says of its cluster, and which policy would serve it best."""

from schedgym.advice.replays import Replay, replay
from schedgym.advice.verdict import Advice, advise

__all__ = ["Advice", "Replay", "advise", "replay"]
