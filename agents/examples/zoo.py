"""The training of rl-zoo3 with one algorithm more: ``ppo_mask``, MaskablePPO of sb3-contrib.

``python -m schedgym.agents.examples.zoo --env schedgym/QueueDelay-v0 --algo ppo_mask --eval-freq -1
--conf-file agents/zoo/ppo_mask.yml``
"""

from __future__ import annotations

import schedgym  # noqa: F401  (registers the ids)
from schedgym.extras import require


def main() -> None:
    """Run the command line as ``python -m rl_zoo3.train`` does; ImportError without rl-zoo3."""
    from rl_zoo3 import ALGOS
    from rl_zoo3.train import train

    ALGOS["ppo_mask"] = require("sb3_contrib", "agents").MaskablePPO
    train()


if __name__ == "__main__":
    main()
