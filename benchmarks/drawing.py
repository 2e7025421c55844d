"""Colours, style and panels of the pictures that programs of this folder draw, and the people in some of them."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

TRUTH, BOUND, OTHER, QUIET = "#0b5d66", "#c2571a", "#7a2e6e", "#9a9388"
"""Colours: what is bounded, the bound, a third thing, and what is known anyway."""
STYLE = {
    "font.size": 9,
    "svg.hashsalt": "frhsic",
    "svg.fonttype": "none",  # letters as text: half of the bytes
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.5,
    "lines.markersize": 4,
}


def panels(count: int, width: float = 6.2, height: float = 2.3, **options: object) -> tuple[Figure, np.ndarray]:
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(1, count, squeeze=False, **options)[0]


def people(n: int = 800) -> tuple[np.ndarray, np.ndarray]:
    """Z of two columns and ages of which few are high; the first column follows age."""
    rng = np.random.default_rng(2)
    age = 20 + 50 * rng.beta(1.2, 3.5, n)
    z = rng.normal(size=(n, 2))
    z[:, 0] += 0.8 * np.sin((age - 20) / 12)
    return z, age
