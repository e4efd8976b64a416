"""The window of ``render_mode="human"``."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.error import DependencyNotInstalled


class Window:
    """A window that shows one image after the other.

    Args:
        title: of the window.
        rate: images a second at most.

    Raises:
        DependencyNotInstalled: without pygame (extra ``render``).
    """

    def __init__(self, title: str, rate: float) -> None:
        try:
            import pygame
        except ImportError as error:
            raise DependencyNotInstalled(
                'render_mode="human" needs pygame: pip install "schedgym[render]"'
            ) from error
        self.pygame: Any = pygame
        pygame.display.init()
        self.rate, self.clock = rate, pygame.time.Clock()
        self.screen: Any = None
        pygame.display.set_caption(title)

    def show(self, image: npt.NDArray[np.uint8]) -> None:
        """Show an image, uint8 [height, width, 3], and wait for as long as the rate asks."""
        surface = self.pygame.image.frombuffer(image.tobytes(), image.shape[1::-1], "RGB")
        if self.screen is None or self.screen.get_size() != surface.get_size():
            self.screen = self.pygame.display.set_mode(surface.get_size())
        self.screen.blit(surface, (0, 0))
        self.pygame.event.pump()  # or the system takes the program for one that hangs
        self.pygame.display.flip()
        self.clock.tick(self.rate)

    def close(self) -> None:
        """Close the window."""
        self.pygame.display.quit()
