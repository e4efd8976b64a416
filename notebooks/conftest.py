"""Notebooks run as tests in their short form."""

import os

os.environ["SCHEDGYM_SHORT"] = "1"
