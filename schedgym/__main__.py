"""``python -m schedgym``: the command line."""

import sys

from schedgym.cli import main

sys.exit(main())
