"""Pictures: the colours of jobs, loads over time, a cluster's state as text or image, a window."""

from schedgym.drawing.colours import colour_jobs, hexadecimal, ink_on, palette
from schedgym.drawing.loads import Load, Past, loads_of, owners, past, spans
from schedgym.drawing.scene import (
    Bar,
    Line,
    Scene,
    draw_image,
    draw_text,
    renderers,
    short_number,
    short_time,
)
from schedgym.drawing.window import Window

__all__ = [
    "Bar",
    "Line",
    "Load",
    "Past",
    "Scene",
    "Window",
    "colour_jobs",
    "draw_image",
    "draw_text",
    "hexadecimal",
    "ink_on",
    "loads_of",
    "owners",
    "palette",
    "past",
    "renderers",
    "short_number",
    "short_time",
    "spans",
]
