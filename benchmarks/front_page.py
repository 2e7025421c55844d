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
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from frhsic import ParityEncoder, ParityRegressor
from frhsic.report.page import find_browser
from frhsic_paper.plot import ACCENT, FAINT, GRAY, LOOKS, WIDTH, finish, panels, save, styled
from frhsic_paper.printed import method_name

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs" / "figures"
BASE = "tuned network"
WAYS = ("contraction", "frem", "reg-gdp", "mmd", "frhsic", "closed form")


def frontier(path: Path, dataset: str = "earnings") -> None:
    """Draw the loss against the gap on test rows of the largest fresh table, for ways to parity on
    one base.
    """
    records = pd.read_parquet(ROOT / "results" / "crossed-corrected.parquet")
    final = records[(records.part == "final") & (records.left_out == -1)]
    final = final[(final.dataset == dataset) & (final.base == BASE)]
    with styled():
        figure, (ax,) = panels(1, 3.0)
        for way in WAYS:
            points = final[final.way == way].sort_values("gdp")
            look = LOOKS.get(way, {"color": GRAY, "marker": "x"})
            if way == "closed form":
                look = {"color": ACCENT, "marker": "o", "linewidth": 3, "markersize": 6}
            ax.plot(points.gdp, np.sqrt(points.loss), **look, label=method_name(way))
        ax.set(
            title="earnings; the same tuned network for all",
            xlabel="gap along age, in dollars, on new rows",
            ylabel="typical error (RMSE), dollars",
            xlim=(0, None),
        )
        finish(figure, [ax])
    save(figure, path)


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

    with styled(), mpl.rc_context({"axes.titlelocation": "left", "axes.titleweight": "normal"}):
        figure = Figure(figsize=(WIDTH, 4.2), layout="constrained")
        (first, second, third), (price, before, after) = figure.subplots(2, 3)
        _along_age(first, age, eta, "A  your model\nη(x) = E[Y | x]")
        _along_age(second, age, eta - served, "B  what x reveals\nof age, c·m(x)")
        _along_age(third, age, served, "C  served score\nη(x) − c·m(x)")
        first.set(ylim=(40, 85), ylabel="rating")
        second.set(ylim=(-22.5, 22.5))
        third.set(ylim=(40, 85))
        for ax, sign in ((second, "−"), (third, "=")):
            ax.text(-0.4, 0.5, sign, transform=ax.transAxes, fontsize=20, ha="center", va="center")
        _trade_offs(price, model.frontier_.to_frame(), model.choice_.position)
        _ages_by_prototype(
            before, age, encoder.at(None).transform(X), "E  prototypes\nwithout limit"
        )
        _ages_by_prototype(after, age, encoder.transform(X), "F  prototypes at\nthe limit 0")
    save(figure, path)


def _along_age(ax: Axes, age: np.ndarray, values: np.ndarray, title: str, shown: int = 200) -> None:
    """Draw a value of some people along age, and its mean over all people near an age."""
    ax.scatter(age[:shown], values[:shown], s=5, color=GRAY, alpha=FAINT, linewidths=0)
    years = np.arange(22, 66, 4)
    means = [values[abs(age - year) <= 2].mean() for year in years]
    ax.plot(years, means, color=ACCENT, linewidth=2.5)
    ax.set(title=title, xlabel="age", xticks=[30, 45, 60])


def _trade_offs(ax: Axes, frontier: pd.DataFrame, served: float) -> None:
    """Draw the loss of every trade-off of a fit against its gap, with a ring at the served one."""
    gaps = frontier.gap_sensitive
    losses = frontier.squared_error
    ax.plot(gaps, losses, "o-", color=ACCENT)
    ring = [np.interp(served, frontier.index, column) for column in (gaps, losses)]
    look = {"markersize": 11, "fillstyle": "none", "markeredgewidth": 2.5, "zorder": 3}
    ax.plot(*ring, "o", color=LOOKS["hsic"]["color"], **look)
    ax.set(title="D  every limit,\nfrom one fit", xlabel="gap along age", ylabel="squared error")
    ax.set(xlim=(-0.4, None), ylim=(0, None), xticks=[0, 2, 4, 6])


def _ages_by_prototype(ax: Axes, age: np.ndarray, z: np.ndarray, title: str) -> None:
    """Draw the middle half and nine tenths of the ages in each prototype, ordered by rating."""
    for place, rating in enumerate(np.unique(z), 1):
        low, lower, median, upper, high = np.quantile(
            age[z[:, 0] == rating], (0.05, 0.25, 0.5, 0.75, 0.95)
        )
        ax.plot([place, place], [low, high], color=GRAY)
        ax.plot([place, place], [lower, upper], color=GRAY, linewidth=5, solid_capstyle="butt")
        ax.plot(place, median, "o", color=ACCENT)
    ax.set(title=title, xlabel="prototype", ylabel="age", ylim=(18, 67), xticks=[])


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
