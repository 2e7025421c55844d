"""How often a target on GDP that holds on validation rows also holds on test rows: Adult, five splits.

    FRHSIC_DATA=... python benchmarks/selection.py [--epochs 12] [--weights 3,4,5,7,10,14,20]

For each target the program chooses the best performance among the models whose GDP is below it on the validation rows:
by its upper confidence bound (the default of `TargetRule`), or by its value alone.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

from frhsic import ParityClassifier, load_dataset
from frhsic.selection import IndependenceRule, PerformanceRule, Rule, Selection, TargetRule, UnmetTargetWarning, select

TARGETS = (0.01, 0.02, 0.03)
FIRST_SEED = 42


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dataset", default="adult")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--weights", default=",".join(f"{weight:g}" for weight in select.WEIGHTS))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--rows", type=int, default=None, help="take the first rows alone")
    arguments = parser.parse_args(argv)
    weights = [float(weight) for weight in arguments.weights.split(",")]
    warnings.simplefilter("ignore", UnmetTargetWarning)
    data = load_dataset(arguments.dataset)
    data = data.take(range(data.n)[: arguments.rows])
    rules: dict[str, Rule] = {
        f"gdp <= {target:g}, {said}": TargetRule(target, confidence=confidence)
        for target in TARGETS
        for said, confidence in (("upper bound", 0.95), ("value alone", 0.5))
    }
    rules |= {"within 1 %": PerformanceRule(0.01), "test of Z": IndependenceRule()}
    found: dict[str, list[tuple[Selection, float, float]]] = {name: [] for name in rules}
    plain = []
    fit_path = select.fit_path
    started = time.process_time()
    for seed in range(FIRST_SEED, FIRST_SEED + arguments.splits):
        path_once = once(fit_path)  # every rule chooses among the models of one training
        split = data.split(seed)
        parts = [
            (data.X.iloc[part.rows], data.y.iloc[part.rows], data.s.iloc[part.rows])
            for part in (split.train, split.test)
        ]
        (X, y, s), (X_test, y_test, s_test) = parts
        model = ParityClassifier(epochs=arguments.epochs, random_state=seed, device="cpu")
        for name, rule in rules.items():
            with patch.object(select, "fit_path", path_once):
                chosen = select.select_weight(
                    model, X, y, sensitive_features=s, rule=rule, weights=weights, random_state=seed
                )
            test = chosen.evaluate(X_test, y_test, sensitive_features=s_test)
            gap = max(float(value) for value in test.gdp.values())
            found[name].append((chosen, test.performance, gap))
            print(
                f"split {seed}  {name:26s}  weight {chosen.weight:6g}  accuracy {test.performance:.4f}  gdp {gap:.4f}",
                flush=True,
            )
        plain.append(chosen.candidates[0])
    print(f"\n{data}\n{arguments.epochs} epochs, {time.process_time() - started:.0f} s of processor time")
    accuracy, gap = mean(c.performance for c in plain), mean(c.gdp for c in plain)
    print(f"unpenalised, on validation rows: accuracy {accuracy:.4f}, gdp {gap:.4f}")
    for name, results in found.items():
        rule = rules[name]
        kept = [gap <= rule.target for _, _, gap in results] if isinstance(rule, TargetRule) else []
        said = f"kept in {sum(kept)} of {len(kept)}" if kept else ""
        print(
            f"{name:26s}  weights {', '.join(f'{c.weight:g}' for c, _, _ in results):26s}  accuracy "
            f"{mean(a for _, a, _ in results):.4f}  gdp {mean(g for _, _, g in results):.4f}, worst "
            f"{max(g for _, _, g in results):.4f}  {said}"
        )


def once(fit_path: Any) -> Any:
    """Return a function that trains in its first call and gives the same models in every later one."""
    models: list[Any] = []

    def path(*given: Any, **named: Any) -> list[Any]:
        if not models:
            models.extend(fit_path(*given, **named))
        return models

    return path


def mean(values: Any) -> float:
    values = list(values)
    return sum(values) / len(values)


if __name__ == "__main__":
    main()
