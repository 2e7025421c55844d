"""How often a target on GDP that holds on validation rows also holds on test rows: Adult, five splits.

    FRHSIC_DATA=... python benchmarks/selection.py [--epochs 12] [--weights 3,4,5,7,10,14,20] [--refine 3]

For each target the program chooses the best log loss among the models whose GDP is below it on the validation rows: by
its upper confidence bound (the default of `TargetRule`), by its value alone, and by the bound with a second round of
weights. Then the least GDP within several losses of the gain, and the test of independence.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from frhsic import FRHSICClassifier, load_dataset
from frhsic.selection import (
    WEIGHTS,
    IndependenceRule,
    LowGainWarning,
    PerformanceRule,
    Rule,
    Selection,
    TargetRule,
    UnmetTargetWarning,
    fitting,
    select_weight,
)
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
    parser.add_argument("--refine", type=int, default=3)
    parser.add_argument("--rows", type=int, default=None, help="take the first rows alone")
    arguments = parser.parse_args(argv)
    weights = [float(weight) for weight in arguments.weights.split(",")]
    warnings.simplefilter("ignore", UnmetTargetWarning)
    warnings.simplefilter("ignore", LowGainWarning)
    data = load_dataset(arguments.dataset)
    data = data.take(range(data.n)[: arguments.rows])
    rules: dict[str, Rule] = {f"gdp <= {target:g}, upper bound": TargetRule(target) for target in TARGETS}
    rules |= {f"gdp <= {target:g}, value alone": TargetRule(target, confidence=0.5) for target in TARGETS}
    rules |= {f"within {100 * loss:g} % of the gain": PerformanceRule(loss) for loss in LOSSES}
    rules |= {"test of Z": IndependenceRule()}
    names = [*rules, *(f"gdp <= {target:g}, refined" for target in TARGETS)]
    found: dict[str, list[tuple[Selection, float, float, float]]] = {name: [] for name in names}
    plain = []
    fit_path = fitting.fit_path
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
        with patch.object(fitting, "fit_path", once(fit_path)):  # every choice is among models of one training
            first = select_weight(model, X, y, rule=TargetRule(max(TARGETS)), **rows)
            choices = {name: chosen_by(rule, first) for name, rule in rules.items()}
            for target in TARGETS:
                choices[f"gdp <= {target:g}, refined"] = select_weight(
                    model, X, y, rule=TargetRule(target), refine=arguments.refine, **rows
                )
        for name, chosen in choices.items():
            test = chosen.evaluate(X_test, y_test, sensitive_features=s_test)
            gap = max(float(value) for value in test.gdp.values())
            found[name].append((chosen, test.accuracy, test.gain, gap))
            print(
                f"split {seed}  {name:26s}  weight {chosen.weight:6g}  accuracy {test.accuracy:.4f}  gain "
                f"{test.gain:.3f}  gdp {gap:.4f}  {'' if chosen.satisfied else 'not met'}",
                flush=True,
            )
        plain.append(first.candidates[0])
    print(f"\n{data}\n{arguments.epochs} epochs, {time.process_time() - started:.0f} s of processor time")
    accuracy, gap = mean(c.accuracy for c in plain), mean(c.gdp for c in plain)
    print(f"unpenalised, on validation rows: accuracy {accuracy:.4f}, gdp {gap:.4f}")
    for name, results in found.items():
        rule = results[0][0].rule
        kept = [gap <= rule.target for *_, gap in results] if isinstance(rule, TargetRule) else []
        said = f"kept in {sum(kept)} of {len(kept)}" if kept else ""
        print(
            f"{name:26s}  weights {', '.join(f'{c.weight:g}' for c, *_ in results):26s}  accuracy "
            f"{mean(a for _, a, _, _ in results):.4f}  gain {mean(g for _, _, g, _ in results):.3f}  gdp "
            f"{mean(g for *_, g in results):.4f}, worst {max(g for *_, g in results):.4f}  {said}"
        )


def chosen_by(rule: Rule, first: Selection) -> Selection:
    """Return what another rule takes of the same candidates; at confidence 0.5 a bound is the value itself."""
    candidates = [replace(c, gdp_upper=c.gdp) if rule.confidence <= 0.5 else c for c in first.candidates]
    admitted, at, reason = rule.choose(candidates, first.scoring.higher_is_better)
    weight, model = candidates[at].weight, first.models[at]
    return replace(first, weight=weight, estimator=model, satisfied=admitted[at], reason=reason, rule=rule)


def once(fit_path: Any) -> Any:
    """Return a function that trains each weight once and gives the same model in every later call."""
    models: dict[float, Any] = {}

    def path(*given: Any, weights: Sequence[float], **named: Any) -> list[Any]:
        new = [weight for weight in weights if weight not in models]
        if new:
            models.update(zip(new, fit_path(*given, weights=new, **named)))
        return [models[weight] for weight in weights]

    return path


def mean(values: Any) -> float:
    values = list(values)
    return sum(values) / len(values)


if __name__ == "__main__":
    main()
