"""How often a target on GDP that holds on validation rows also holds on test rows: Adult, five splits.

    FRHSIC_DATA=... python benchmarks/selection.py [--epochs 12] [--weights 3,4,5,7,10,14,20]

For each target the program chooses the best log loss among the models whose GDP is below it on the validation rows: by
its upper confidence bound, and by its value alone. Then the least GDP within several losses of the gain, and the test
of independence.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from frhsic import FRHSICClassifier, load_dataset
from frhsic.selection import LowGainWarning, Rule, Selection, UnmetTargetWarning, select_weight
from frhsic.selection.choosing import WEIGHTS
from frhsic.training import Training

TARGETS = (0.01, 0.02, 0.03)
LOSSES = (0.05, 0.1, 0.2)
FIRST_SEED = 42


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dataset", default="adult")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--weights", default=",".join(f"{weight:g}" for weight in WEIGHTS))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--rows", type=int, default=None, help="take the first rows alone")
    arguments = parser.parse_args(argv)
    weights = [float(weight) for weight in arguments.weights.split(",")]
    warnings.simplefilter("ignore", UnmetTargetWarning)
    warnings.simplefilter("ignore", LowGainWarning)
    data = load_dataset(arguments.dataset)
    data = data.take(range(data.n)[: arguments.rows])
    rules: dict[str, Rule] = {f"gdp <= {target:g}, upper bound": Rule("gdp", target) for target in TARGETS}
    rules |= {f"gdp <= {target:g}, value alone": Rule("gdp", target, confidence=0.5) for target in TARGETS}
    rules |= {f"within {100 * loss:g} % of the gain": Rule("gain", 1 - loss) for loss in LOSSES}
    rules |= {"test of Z": Rule("p", 0.05)}
    found: dict[str, list[tuple[Selection, float, float, float]]] = {name: [] for name in rules}
    plain = []
    started = time.process_time()
    for seed in range(FIRST_SEED, FIRST_SEED + arguments.splits):
        split = data.split(seed)
        parts = [
            (data.X.iloc[part.rows], data.y.iloc[part.rows], data.s.iloc[part.rows])
            for part in (split.train, split.test)
        ]
        (X, y, s), (X_test, y_test, s_test) = parts
        model = FRHSICClassifier(training=Training(epochs=arguments.epochs), random_state=seed, device="cpu")
        rows = {"sensitive_features": s, "weights": weights, "random_state": seed}
        first = select_weight(model, X, y, rule=max(TARGETS), **rows)
        choices = {name: chosen_by(rule, first) for name, rule in rules.items()}  # among models of one training
        for name, chosen in choices.items():
            test = chosen.evaluate(X_test, y_test, sensitive_features=s_test)
            gap = max(float(value) for value in test.gdp.values())
            accuracy = chosen.estimator.score(X_test, y_test)
            found[name].append((chosen, accuracy, test.gain, gap))
            print(
                f"split {seed}  {name:26s}  weight {chosen.weight:6g}  accuracy {accuracy:.4f}  gain "
                f"{test.gain:.3f}  gdp {gap:.4f}  {'' if chosen.satisfied else 'not met'}",
                flush=True,
            )
        plain.append(first.candidates[0])
    print(f"\n{data}\n{arguments.epochs} epochs, {time.process_time() - started:.0f} s of processor time")
    print(f"unpenalised, on validation rows: gdp {mean(c.gdp for c in plain):.4f}")
    for name, results in found.items():
        rule = results[0][0].rule
        kept = [gap <= rule.limit for *_, gap in results] if rule.measure == "gdp" else []
        said = f"kept in {sum(kept)} of {len(kept)}" if kept else ""
        print(
            f"{name:26s}  weights {', '.join(f'{c.weight:g}' for c, *_ in results):26s}  accuracy "
            f"{mean(a for _, a, _, _ in results):.4f}  gain {mean(g for _, _, g, _ in results):.3f}  gdp "
            f"{mean(g for *_, g in results):.4f}, worst {max(g for *_, g in results):.4f}  {said}"
        )


def chosen_by(rule: Rule, first: Selection) -> Selection:
    """Return what another rule takes of the same candidates; at confidence 0.5 a bound is the value itself."""
    candidates = [replace(c, gdp_upper=c.gdp) if rule.confidence <= 0.5 else c for c in first.candidates]
    admitted, at = rule.choose(candidates)
    weight, model = candidates[at].weight, first.models[at]
    return replace(first, weight=weight, estimator=model, satisfied=admitted[at], rule=rule)


def mean(values: Any) -> float:
    values = list(values)
    return sum(values) / len(values)


if __name__ == "__main__":
    main()
