"""What must be computed: the packages, the tags of a wheel with kernels, and the addresses of the project.

The three top-level folders are one package when installed.
"""

import os
import sys
import sysconfig
from pathlib import Path

from setuptools import find_packages, setup

# compiled kernels serve one version of Python on one platform; of the C library they need old functions only
TAGS = {
    "python_tag": f"cp{sys.version_info.major}{sys.version_info.minor}",
    "plat_name": sysconfig.get_platform().replace("linux", "manylinux_2_17"),
}
# where the package is published from is known there only: GitHub's workflows set this variable
REPOSITORY = f"https://github.com/{os.environ.get('GITHUB_REPOSITORY')}"
URLS = {
    "Repository": REPOSITORY,
    "Issues": f"{REPOSITORY}/issues",
    "Changelog": f"{REPOSITORY}/blob/main/CHANGELOG.md",
}

setup(
    packages=[
        "schedgym",
        *(f"schedgym.{name}" for name in find_packages("schedgym")),
        "schedgym.baselines",
        *(f"schedgym.baselines.{name}" for name in find_packages("baselines")),
        "schedgym.agents",
        *(f"schedgym.agents.{name}" for name in find_packages("agents")),
    ],
    options={"bdist_wheel": TAGS} if Path("schedgym/kernels").is_dir() else {},
    project_urls=URLS if "GITHUB_REPOSITORY" in os.environ else {},
)
