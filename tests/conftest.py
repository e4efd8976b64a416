"""Settings that all tests share."""

from __future__ import annotations

import os

from hypothesis import settings

# compiling a kernel takes seconds, so no example has a deadline; on a build server a failure must repeat
settings.register_profile("dev", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "dev")
