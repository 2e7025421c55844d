r"""The finite-sample bound on trained models: both sides, as published and as the theorem states them.

Records (`bound-sides-{protocol}.jsonl`), one for each model of the experiment "bound" (and number m, if corrected):

``experiment``   "bound-sides"
``protocol``, ``dataset``, ``method``, ``weight``, ``repeat``   as in the sweep
``hsic``         with bandwidth 1 on Z and the median on S, test rows
``rhs``          HSIC / λ̂
published: ``lambda_hat``, ``kept``; ``lhs_mean``, ``lhs_max`` over 64 anchors, of the variance over the full sample
corrected: ``rule`` ("1", "2", "5", "1e-3", "1e-6"), ``directions`` (m), ``lambda_hat``;
``lhs_mean``, ``lhs_max`` of the projected variance of the same anchors, ``trace`` and ``tight`` forms of the bound,
``trivial`` (what holds whatever the data), all for heads of norm 1
"""
