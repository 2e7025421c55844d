"""The pictures of the README and of the first pages: the frontier, how the closed form and the
encoder work, and a report.

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

from frhsic import ParityEncoder, ParityRegressor
from frhsic.report.page import find_browser

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs" / "figures"
STYLE = {"font.size": 14, "axes.titlesize": 15, "axes.titlelocation": "left"}
"""Letters that can be read where a figure is shown at half of its size, as on a phone."""
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
    with mpl.rc_context(STYLE):
        fig, ax = plt.subplots(figsize=(8.8, 5.4), layout="constrained")
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
            title="Crime data; the same tuned network for all",
            xlabel="gap along the share of Black residents (GDP), on new rows",
            ylabel="squared error, on new rows",
            xlim=(0, None),
        )
        ax.legend()
        ax.spines[["top", "right"]].set_visible(False)
        _saved(fig, path)


def how_it_works(path: Path, n: int = 4000) -> None:
    """Draw the model of y, what is subtracted and what is served, for people along age; the
    trade-offs of the same fit; and the ages in each prototype of an encoder.
    """
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 65, size=n).round()
    experience = np.clip(age - 22 + rng.normal(0, 6, size=n), 0, None)
    test = rng.normal(size=n)
    rating = 50 + 0.6 * experience + 5 * test + rng.normal(0, 5, size=n)
    X = np.column_stack([experience, test])
    model = ParityRegressor(limit="5%", random_state=0, n_jobs=1)
    model.fit(X, rating, sensitive_features=age)
    encoder = ParityEncoder(random_state=0, n_jobs=1).fit(X, rating, sensitive_features=age)
    eta = model.at(None).predict(X)
    served = model.predict(X)

    with mpl.rc_context(STYLE):
        fig, ((first, second, third), (price, before, after)) = plt.subplots(
            2, 3, figsize=(8.8, 6.5), layout="constrained"
        )
        _along_age(first, age, eta, "A  your model\nη(x) = E[Y | x]")
        _along_age(second, age, eta - served, "B  what x reveals\nof age, c·m(x)")
        _along_age(third, age, served, "C  served score\nf(x) = η(x) − c·m(x)")
        first.set(ylim=(40, 85), ylabel="rating")
        second.set(ylim=(-22.5, 22.5))
        third.set(ylim=(40, 85))
        for ax, sign in ((second, "−"), (third, "=")):
            ax.text(-0.3, 0.5, sign, transform=ax.transAxes, fontsize=28, ha="center", va="center")
        _trade_offs(price, model.frontier_.to_frame(), model.choice_.position)
        _ages_by_prototype(
            before, age, encoder.at(None).transform(X), "E  prototypes\nwithout limit"
        )
        _ages_by_prototype(after, age, encoder.transform(X), "F  prototypes at\nthe limit 0")
        for ax in fig.axes:
            ax.spines[["top", "right"]].set_visible(False)
        _saved(fig, path)


def _along_age(
    ax: plt.Axes, age: np.ndarray, values: np.ndarray, title: str, shown: int = 200
) -> None:
    """Draw a value of some people along age, and its mean over all people near an age."""
    ax.scatter(age[:shown], values[:shown], s=8, color="C0", alpha=0.4, linewidths=0)
    years = np.arange(22, 66, 4)
    means = [values[abs(age - year) <= 2].mean() for year in years]
    ax.plot(years, means, color="C3", linewidth=3)
    ax.set(title=title, xlabel="age", xticks=[30, 45, 60])


def _trade_offs(ax: plt.Axes, frontier: pd.DataFrame, served: float) -> None:
    """Draw the loss of every trade-off of a fit against its gap, with a ring at the served one."""
    gaps = frontier.gap_sensitive
    losses = frontier.squared_error
    ax.plot(gaps, losses, "o-", color="C0", linewidth=2)
    ring = [np.interp(served, frontier.index, column) for column in (gaps, losses)]
    ax.plot(*ring, "o", markersize=14, fillstyle="none", color="C3", markeredgewidth=3)
    ax.set(title="D  every limit,\nfrom one fit", xlabel="gap along age", ylabel="squared error")
    ax.set(xlim=(-0.4, None), ylim=(0, None), xticks=[0, 2, 4, 6])


def _ages_by_prototype(ax: plt.Axes, age: np.ndarray, z: np.ndarray, title: str) -> None:
    """Draw the middle half and nine tenths of the ages in each prototype, ordered by rating."""
    for place, rating in enumerate(np.unique(z), 1):
        low, lower, median, upper, high = np.quantile(
            age[z[:, 0] == rating], (0.05, 0.25, 0.5, 0.75, 0.95)
        )
        ax.plot([place, place], [low, high], color="C0", linewidth=1.5)
        ax.plot([place, place], [lower, upper], color="C0", linewidth=7, solid_capstyle="butt")
        ax.plot(place, median, "o", color="C3", markersize=7)
    ax.set(title=title, xlabel="prototype, by rating", ylabel="age", ylim=(18, 67), xticks=[])


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
    how_it_works(FIGURES / "how-it-works.svg")
    report(FIGURES / "front-report.png")
