"""Pictures for the README and the first pages, and screens of seven kinds of report to look at.

    python benchmarks/pictures.py                     # the pictures, into docs/figures
    python benchmarks/pictures.py --screens FOLDER    # the reports, wide and narrow, light and dark

Both need Chromium on the PATH. The frontier is drawn from the records of the study `crossed`; all
other tables are made up here, or by `examples/gallery/plot_production.py`.
"""

from __future__ import annotations

import argparse
import runpy
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from frhsic import ParityClassifier, ParityRegressor, audit
from frhsic.auditing import Context, since
from frhsic.report import Report, trained_report, write
from frhsic_paper.plot import ACCENT, FAINT, GRAY, LOOKS, WIDTH, finish, page_style, panels, save
from frhsic_paper.printed import method_name

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs" / "figures"
BASE = "tuned network"
WAYS = ("contraction", "frhsic", "frem", "reg-gdp", "hsic", "gedi", "closed form")
WIDTHS = (1280, 390)

Table = tuple[pd.DataFrame, pd.Series, pd.Series | pd.DataFrame]
"""Columns, target and attributes."""


def frontier(path: Path, dataset: str = "food_spending") -> None:
    """Draw the loss against the gap on test rows of the largest fresh table of numbers, for ways to
    parity on one base.
    """
    records = pd.read_parquet(ROOT / "paper" / "results" / "crossed-corrected.parquet")
    final = records[(records.part == "final") & (records.dataset == dataset)]
    final = final[final.base == BASE].set_index("way")
    with page_style():
        figure, (ax,) = panels(1, 3.0)
        for way in WAYS:
            gap, loss = (
                np.array([row[0] for row in final.loc[way, name]]) for name in ("gaps", "losses")
            )
            order = np.argsort(gap)
            look = LOOKS.get({"gedi": "mmd"}.get(way, way), {"color": GRAY, "marker": "x"})
            if way == "closed form":
                look = {"color": ACCENT, "marker": "o", "linewidth": 3, "markersize": 6}
            ax.plot(gap[order], np.sqrt(loss[order]), **look, label=method_name(way))
        ax.set(
            title="food expenditure; the same tuned network for all",
            xlabel="gap by age, in log points, on new rows",
            ylabel="typical error (RMSE), log points",
            xlim=(0, None),
        )
        finish(figure, [ax])
    save(figure, path)


def how_it_works(path: Path, n: int = 4000) -> None:
    """Draw the model of y, what is subtracted and what is served, for people along age, and the
    trade-offs of the same fit.
    """
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 65, size=n).round()
    experience = np.clip(age - 22 + rng.normal(0, 6, size=n), 0, None)
    test = rng.normal(size=n)
    rating = 50 + 0.6 * experience + 5 * test + rng.normal(0, 5, size=n)
    X = np.column_stack([experience, test])
    model = ParityRegressor(limit="5%", random_state=0, n_jobs=1)
    model.fit(X, rating, sensitive_features=age)
    eta = model.at(None).predict(X)
    served = model.predict(X)

    with page_style(), mpl.rc_context({"axes.titlelocation": "left", "axes.titleweight": "normal"}):
        figure = Figure(figsize=(1.5 * WIDTH, 2.5), layout="constrained")
        first, second, third, price = figure.subplots(1, 4)
        _along_age(first, age, eta, "A  your model\nη(x) = E[Y | x]")
        _along_age(second, age, eta - served, "B  what x reveals\nof age, c·m(x)")
        _along_age(third, age, served, "C  served score\nη(x) − c·m(x)")
        first.set(ylim=(40, 85), ylabel="rating")
        second.set(ylim=(-22.5, 22.5))
        third.set(ylim=(40, 85))
        for ax, sign in ((second, "−"), (third, "=")):
            ax.text(-0.4, 0.5, sign, transform=ax.transAxes, fontsize=20, ha="center", va="center")
        _trade_offs(price, model.frontier_.to_frame(), model.choice_.position)
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
    ax.plot(gaps, losses, color=ACCENT, linewidth=2.5)
    ring = [np.interp(served, frontier.index, column) for column in (gaps, losses)]
    look = {"markersize": 11, "fillstyle": "none", "markeredgewidth": 2.5, "zorder": 3}
    ax.plot(*ring, "o", color=LOOKS["hsic"]["color"], **look)
    ax.set(title="D  every limit,\nfrom one fit", xlabel="gap by age", ylabel="squared error")
    ax.set(xlim=(-0.4, None), ylim=(0, None), xticks=[0, 2, 4, 6])


def loans(n: int, seed: int, slope: float = 1.0) -> pd.DataFrame:
    """Return applicants whose income and years in a job tell their age, and who defaulted."""
    random = np.random.default_rng(seed)
    age = np.round(18 + random.gamma(4, 6, n))
    tenure = np.clip((age - 18) * random.uniform(0.1, 0.9, n), 0, None)
    income = np.exp(0.3 * np.log(age) + 0.4 * random.standard_normal(n) + 6.5)
    debt = random.gamma(2, 0.5, n)
    chance = 1 / (
        1 + np.exp(1.2 + 0.06 * slope * (tenure - 9) + 0.8 * np.log(income / 2000) - debt)
    )
    return pd.DataFrame(
        {
            "income": income,
            "tenure": tenure,
            "debt": debt,
            "age": age,
            "default": (random.random(n) < chance).astype(int),
            "p": np.clip(chance + 0.02 * random.standard_normal(n), 0, 1),
        }
    )


def report_of(
    model: ParityClassifier | ParityRegressor, table: Table, rows: int, **more: Any
) -> Report:
    """Fit a model to the first rows, and report on the others."""
    X, y, s = table
    model.set_params(random_state=0, n_jobs=1)
    model.fit(X[:rows], y[:rows], sensitive_features=s[:rows])
    return trained_report(model, X[rows:], y[rows:], sensitive_features=s[rows:], **more)


def loan_columns(table: pd.DataFrame) -> Table:
    return table[["income", "tenure", "debt"]], table["default"], table["age"]


def kept() -> Report:
    """Return a classifier that was fitted with a margin, so that 6,000 people show 0.05 to be
    kept.
    """
    context = Context(title="Loan approval and age", source="loans.csv", people="applicants")
    table = loan_columns(loans(12_000, 1, slope=1.6))
    settings = {"limit": 0.05, "threshold": 0.4, "favourable": 0, "context": context}
    return report_of(ParityClassifier(limit=0.04), table, 6000, **settings)


def exceeded() -> Report:
    """Return the scores of a model in production, whose gap exceeds the limit for certain."""
    table = loans(4000, 2, slope=1.6)
    context = Context(title="Loan approval and age", source="june.csv", people="applicants")
    return Report(
        audit(
            table["p"],
            table["age"],
            table["default"],
            limit=0.03,
            threshold=0.4,
            favourable=0,
            context=context,
        )
    )


def uncertain() -> Report:
    """Return a regression with half of the gap, which 500 held-out people do not settle."""
    random = np.random.default_rng(3)
    n = 2000
    age = random.uniform(20, 65, n).round()
    experience = np.clip(age - 22 + random.normal(0, 6, n), 0, None)
    skill = random.normal(size=n)
    wage = 14 + 0.25 * experience + 3 * skill + random.normal(0, 3, n)
    X = pd.DataFrame({"experience": experience, "skill": skill})
    table = X, pd.Series(wage, name="hourly wage"), pd.Series(age, name="age")
    context = Context(source="wages.csv", people="employees")
    return report_of(ParityRegressor(limit="50%"), table, 1500, context=context)


def drift() -> Report:
    """Return the scores of June, whose gap has grown since May; there is no limit."""
    tables = loans(3000, 4, slope=0.4), loans(3000, 5, slope=1.6)
    may, june = (
        audit(
            table["p"],
            table["age"],
            table["default"],
            context=Context(source=name, people="applicants"),
        )
        for table, name in zip(tables, ("may.csv", "june.csv"))
    )
    return Report(since(june, may), earlier=may)


def no_outcome() -> Report:
    """Return scores along two attributes, without an outcome and without a limit."""
    random = np.random.default_rng(6)
    n = 1500
    age = random.uniform(20, 70, n).round()
    distance = random.lognormal(2, 1, n).round(1)
    score = 600 - 1.5 * (age - 45) - 6 * np.log(distance) + 30 * random.standard_normal(n)
    s = pd.DataFrame({"age": age, "distance": distance})
    return Report(audit(pd.Series(score, name="rating"), s, context=Context(source="ratings.csv")))


def two_attributes() -> Report:
    """Return a classifier with a limit for each of two attributes, of which one is exceeded."""
    random = np.random.default_rng(7)
    n = 6000
    table = loans(n, 7, slope=1.6)
    distance = random.lognormal(2, 0.8, n).round(1)
    table["visits"] = np.log(distance) + 0.5 * random.standard_normal(n)
    late = random.random(n) < 1 / (1 + np.exp(2.5 - 0.7 * table["visits"]))
    y = (late | (table["default"] == 1)).astype(int).rename("default")
    X = table[["income", "tenure", "debt", "visits"]]
    s = table[["age"]].assign(distance=distance)
    model = ParityClassifier(limit={"age": 0.03, "distance": 0.02})
    context = Context(title="Loan approval, age and distance", people="applicants")
    return report_of(model, (X, y, s), 4000, context=context)


def ranks() -> Report:
    """Return a classifier whose order of people is limited, not its mean score."""
    table = loan_columns(loans(6000, 8, slope=1.6))
    context = Context(title="Order of loan applicants and age", people="applicants")
    return report_of(ParityClassifier(limit=0.06, aim="rank"), table, 4000, context=context)


REPORTS = (kept, exceeded, uncertain, drift, no_outcome, two_attributes, ranks)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the browser of this machine."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


def take_picture(
    browser: Browser, page: Path, picture: Path, width: int = WIDTHS[0], scheme: str = "light"
) -> None:
    """Take a picture of the first screen of a page."""
    tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    tab.goto(page.as_uri())
    tab.screenshot(path=picture)
    tab.close()


def front_report(path: Path) -> None:
    """Run the credit example of the gallery and take a picture of its report."""
    example = runpy.run_path(str(ROOT / "examples" / "gallery" / "plot_production.py"))
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        page = write(example["report"], Path(folder, "credit.html"))
        picture = Path(folder, "page.png")
        take_picture(browser, page, picture)
        image = Image.open(picture).convert("RGB")
        image.quantize(96, dither=Image.Dither.NONE).save(path, optimize=True)


def screens(folder: Path) -> None:
    """Write all reports, and pictures of their first screens."""
    folder.mkdir(parents=True, exist_ok=True)
    with chromium() as browser:
        for make in REPORTS:
            with warnings.catch_warnings(action="ignore"):
                page = write(make(), folder.resolve() / f"{make.__name__}.html")
            for width in WIDTHS:
                for scheme in ("light", "dark"):
                    picture = page.with_name(f"{make.__name__}-{width}-{scheme}.png")
                    take_picture(browser, page, picture, width, scheme)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--screens", type=Path, help="folder of the reports and their screens")
    options = parser.parse_args()
    if options.screens:
        screens(options.screens)
        return
    mpl.use("agg")
    frontier(FIGURES / "frontier.svg")
    how_it_works(FIGURES / "how-it-works.svg")
    front_report(FIGURES / "front-report.png")


if __name__ == "__main__":
    main()
