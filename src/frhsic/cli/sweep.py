"""`frhsic sweep`: train all weights of the penalty at once, choose one, and report what each costs."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from frhsic._files import new_folder, require_writable
from frhsic.cli import _limits, _options, _terminal, _training
from frhsic.formatting import did_you_mean, stated

if TYPE_CHECKING:
    from frhsic.selection import Rule

DEFAULT_FOLDER = Path("frhsic-sweep")

EPILOG = """
[bold]Examples[/bold]

[cyan]frhsic sweep people.csv --target approved --sensitive age[/cyan]

Ten weights; the least dependence among models that keep 80 % of what the unpenalised model gains over a constant; all
of it in the folder frhsic-sweep.

[cyan]frhsic sweep people.csv -t approved -s age --target-gdp 0.02 --out age-sweep[/cyan]

The best log loss among models whose GDP is at most 0.02, with a margin for chance.

[cyan]frhsic sweep people.csv -t wage -s age --test --weights 1,10,100,1000 --epochs 50[/cyan]

The smallest weight at which a test does not reject that the representation is independent of age.

[cyan]frhsic sweep loans.csv -t default -s age --split-by date --scoring roc_auc --refine 3[/cyan]

Trained on the earliest rows, chosen on later and reported on the latest ones; performance by AUC; a second round of
weights around the choice.

[cyan]frhsic sweep people.csv -t approved -s age --scheduler tcp://10.0.0.1:8786[/cyan]

The weights are dealt among the workers of a Dask cluster, each of which trains a fleet of its own.

[bold]What the folder holds[/bold]

report.html: the trade-off (pick a λ, see its curve), the audits before and after. model.safetensors: the chosen model.
frontier.csv: every weight, on validation and on test rows. models/: every model, with --all-models.

[bold]Exit codes[/bold]

0 done; 1 no weight does what was asked for, a number is above its --fail-above limit, or a --limit is
not shown to be kept (all is written nevertheless); 2 bad input; 130 interrupted.
"""


@_options.with_fields
def sweep(
    columns: _options.Columns,
    *,
    weights: Annotated[
        list[str] | None,
        typer.Option(
            help="Weights λ, such as 1,10,100; may be repeated. 0 is always among them. By default 0.1 to 1000."
        ),
    ] = None,
    within: Annotated[
        str | None,
        typer.Option(
            help="Choose the least GDP within this loss of what the unpenalised model gains over a constant. The "
            "default, at 20%."
        ),
    ] = None,
    target_gdp: Annotated[
        float | None, typer.Option(help="Choose the best performance among models whose GDP is at most this.")
    ] = None,
    test: Annotated[
        bool, typer.Option("--test", help="Choose the smallest weight at which independence is not rejected at 5 %.")
    ] = False,
    scoring: Annotated[
        str | None,
        typer.Option(help="A scikit-learn scorer such as roc_auc; by default log loss or squared error."),
    ] = None,
    refine: Annotated[
        int, typer.Option(min=0, help="Weights to add on either side of the choice, in a second round.")
    ] = 0,
    refit: Annotated[
        bool, typer.Option("--refit", help="Fit the chosen weight again on training and validation rows.")
    ] = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for report, model and frontier.")] = DEFAULT_FOLDER,
    all_models: Annotated[bool, typer.Option("--all-models", help="Write the model of every weight.")] = False,
    recipe: _training.Recipe,
    scheduler: _options.Scheduler = None,
    validation_share: Annotated[float, typer.Option(help="Share of the rows that the choice is made on.")] = 0.2,
    reporting: _options.Reporting,
    stated: _options.Stated,
) -> None:
    """Train a model for every weight of the penalty, choose one, and report what independence costs.

    Rows are dealt into three parts: one trains, one chooses the weight, one is for the report. All weights are trained
    at once.
    """
    from frhsic.distributed import cluster

    with _terminal.one_thread(), new_folder(out), cluster(scheduler) if scheduler else contextlib.nullcontext():
        from frhsic.auditing import Settings
        from frhsic.estimators.persistence import file_bytes

        limits = _limits.parsed(reporting.fail_above or ())
        if scoring is not None:
            _require_scorer(scoring)
        rule, grid = _rule(within, target_gdp, test), _grid(weights)
        files = {"model": out / "model.safetensors", "frontier": out / "frontier.csv", "report": out / "report.html"}
        files |= stated.files
        require_writable(files, {"table": columns.table})
        settings = Settings(max_rows=reporting.max_rows, seed=recipe.seed)
        if recipe.penalty == "none":
            raise ValueError("--penalty none makes every weight the same; choose a penalty to sweep over.")
        data = _training.read(columns, recipe.seed)
        result = _training.sweep(
            data,
            recipe,
            grid,
            rule,
            validation=validation_share,
            held_out=reporting.test_share,
            settings=settings,
            title=reporting.title,
            page=_training.Page(stated, columns.table),
            scoring=scoring,
            refine=refine,
            refit=refit,
        )
        contents = {files["frontier"]: _frontier(result)}
        if all_models:
            (out / "models").mkdir(exist_ok=True)
            contents |= {
                out / "models" / f"weight-{model.penalty_weight:g}.safetensors": file_bytes(model)
                for model in result.models
            }
        _training.finish(result, files, contents, as_json=reporting.as_json, limits=limits)


def _rule(within: str | None, target_gdp: float | None, test: bool) -> Rule:
    from frhsic.selection import IndependenceRule, PerformanceRule, TargetRule

    given = [name for name, on in (("--within", within), ("--target-gdp", target_gdp), ("--test", test)) if on]
    if len(given) > 1:
        raise ValueError(f"{' and '.join(given)} are different ways to choose; pass one of them.")
    if test:
        return IndependenceRule()
    if target_gdp is not None:
        if not 0 < target_gdp < math.inf:
            raise ValueError(f"--target-gdp is {stated(target_gdp)}; pass a positive number, such as 0.02.")
        return TargetRule(target_gdp)
    return PerformanceRule() if within is None else PerformanceRule(_share(within))


def _share(text: str) -> float:
    written = text.strip()
    share = _options.number(written.removesuffix("%")) / (100 if written.endswith("%") else 1)
    if not 0 <= share < 1:
        raise ValueError(f"--within is {text!r}; pass a share of the gain such as 20% or 0.2.")
    return share


def _require_scorer(name: str) -> None:
    from sklearn.metrics import get_scorer_names

    if name not in get_scorer_names():
        raise ValueError(f"--scoring is {name!r}, no scorer of scikit-learn.{did_you_mean(name, get_scorer_names())}")


def _grid(texts: Sequence[str] | None) -> tuple[float, ...]:
    from frhsic.selection import WEIGHTS

    if not texts:
        return WEIGHTS
    grid = tuple(sorted({_options.number(part) for text in texts for part in text.replace(",", " ").split()}))
    if not all(0 <= weight < math.inf for weight in grid) or max(grid, default=0.0) == 0:
        raise ValueError(f"--weights is {', '.join(texts)!r}; pass numbers above 0, such as 1,10,100.")
    return grid


def _frontier(result: _training.Trained) -> bytes:
    """Return a table of one row for each weight: its measures on validation rows and on test rows."""
    assert result.selection is not None
    assert result.report.tradeoff is not None
    frame = result.selection.to_frame()
    seen = frame.columns.difference(["weight", "accepted", "chosen"])
    frame = frame.rename(columns={name: f"validation_{name}" for name in seen})
    tradeoff = result.report.tradeoff
    shown = {
        "accuracy" if tradeoff.higher_is_better else "mean_squared_error": "performance",
        "gdp": "gdp",
        "hsic": "hsic",
    }
    for name, key in shown.items():
        frame[f"test_{name}"] = [getattr(point, key) for point in tradeoff.points]
    return frame.to_csv(index=False).encode()
