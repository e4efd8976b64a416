"""Training by other libraries, on the environments as they are; each module runs with ``python -m``."""
