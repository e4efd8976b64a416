"""The list of packages: computed, because the three top-level folders are one package when installed."""

from setuptools import find_packages, setup

setup(
    packages=[
        "schedgym",
        *(f"schedgym.{name}" for name in find_packages("schedgym")),
        "schedgym.baselines",
        *(f"schedgym.baselines.{name}" for name in find_packages("baselines")),
        "schedgym.agents",
        *(f"schedgym.agents.{name}" for name in find_packages("agents")),
    ]
)
