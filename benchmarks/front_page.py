"""The pictures of the README and of the first pages: the frontier, how the closed form works, and a
report.

    python benchmarks/front_page.py            # into docs/figures; needs Chromium on the PATH

The frontier is drawn from the records of `frhsic reproduce crossed`. The report is that of
`examples/gallery/plot_production.py`, on a made-up table, and so is the table of the drawing.
"""

from __future__ import annotations

import runpy
import subprocess
import tempfile
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from PIL import Image

from frhsic import ParityRegressor
from frhsic.report.page import find_browser

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs" / "figures"
BASE = "tuned network"
WAYS = {
    "contraction": ("0.55", "scores shrunk to their mean"),
    "frem": ("C4", "FREM"),
    "reg-gdp": ("C1", "Reg-GDP"),
    "mmd": ("C2", "binned MMD"),
    "frhsic": ("C3", "FRHSIC"),
    "closed form": ("C0", "closed form"),
}


def frontier(path: Path, dataset: str = "crime") -> None:
    """Draw the loss against the gap on test rows, for ways to parity on one base."""
    records = pd.read_parquet(ROOT / "results" / "crossed-corrected.parquet")
    final = records[(records.part == "final") & (records.left_out == -1)]
    final = final[(final.dataset == dataset) & (final.base == BASE)]
    fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    for way, (colour, label) in WAYS.items():
        points = final[final.way == way].sort_values("gdp")
        width = 3 if label == "closed form" else 1.6
        ax.plot(
            points.gdp,
            points.loss,
            marker="o",
            markersize=width + 2,
            linewidth=width,
            color=colour,
            label=label,
        )
    ax.set(
        xlabel="gap along the share of Black residents (GDP), on new rows",
        ylabel="squared error, on new rows",
        xlim=(0, None),
    )
    ax.legend(title="Crime data; the same tuned network for all", alignment="left")
    ax.spines[["top", "right"]].set_visible(False)
    _saved(fig, path)


def closed_form(path: Path, n: int = 4000, shown: int = 350) -> None:
    """Draw the model of y, what is subtracted, and what is served, for people along age."""
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 65, size=n).round()
    experience = np.clip(age - 22 + rng.normal(0, 6, size=n), 0, None)
    test = rng.normal(size=n)
    rating = 50 + 0.6 * experience + 5 * test + rng.normal(0, 5, size=n)
    X = np.column_stack([experience, test])
    model = ParityRegressor(limit="5%", random_state=0, n_jobs=1).fit(
        X, rating, sensitive_features=age
    )
    eta, served = model.at(None).predict(X), model.predict(X)
    fig, axes = plt.subplots(1, 3, figsize=(7.4, 3.3), layout="constrained", width_ratios=(1, 1, 1))
    panels = (
        (eta, "your model\n$\\eta(x) = E[Y\\,|\\,x]$"),
        (eta - served, "what the columns tell about age\n$\\Sigma_k\\, c_k m_k(x)$"),
        (served, "served score\n$f(x)$"),
    )
    years = np.arange(22, 66, 4)
    for ax, sign, (values, title) in zip(axes, ("", "−", "="), panels):
        ax.scatter(age[:shown], values[:shown], s=6, color="C0", alpha=0.35, linewidths=0)
        ax.plot(
            years,
            [values[abs(age - year) <= 2].mean() for year in years],
            color="C3",
            linewidth=2.5,
        )
        ax.set_title(title, fontsize=11)
        ax.set(
            xlabel="age",
            ylim=(40, 85) if values is not panels[1][0] else (-22.5, 22.5),
            xticks=[30, 45, 60],
        )
        ax.spines[["top", "right"]].set_visible(False)
        ax.text(-0.3, 0.5, sign, transform=ax.transAxes, fontsize=22, ha="center", va="center")
    axes[0].set_ylabel("score; red: mean at an age")
    _saved(fig, path)


def _saved(fig: plt.Figure, path: Path) -> None:
    with mpl.rc_context({"svg.hashsalt": "frhsic"}):
        fig.savefig(path, metadata={"Date": None})
    plt.close(fig)


def report(path: Path, width: int = 1280, height: int = 900) -> None:
    """Run the credit example of the gallery and take a picture of the first screen of its
    report.
    """
    with tempfile.TemporaryDirectory() as folder:
        written = runpy.run_path(str(ROOT / "examples" / "gallery" / "plot_production.py"))[
            "report"
        ]
        page, picture = Path(folder, "credit.html"), Path(folder, "page.png")
        from frhsic.report import write

        write(written, page)
        command = [
            find_browser(),
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
        ]
        more = [
            f"--window-size={width},{height}",
            f"--user-data-dir={folder}/browser",
            f"--screenshot={picture}",
        ]
        subprocess.run(
            [*command, *more, page.as_uri()], check=True, capture_output=True, timeout=120
        )
        image = Image.open(picture).convert("RGB")
        image.quantize(96, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    mpl.use("agg")
    frontier(FIGURES / "frontier.svg")
    closed_form(FIGURES / "closed-form.svg")
    report(FIGURES / "front-report.png")
