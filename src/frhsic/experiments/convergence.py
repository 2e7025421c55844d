r"""How fast HSIC and EIPM settle: errors over sample sizes, and the slopes of their means.

:math:`Z \sim N(0, 1),\ S = Z/2 + \sqrt{3/4}\,\varepsilon`, kernels of bandwidth 1.

Records (`convergence-{protocol}.jsonl`), one for each statistic, n and repeat:

``experiment``  "convergence"
``protocol``    "published": float32, fixed γ = 1, the "truth" is one draw of 20,000 rows. "corrected": float64, exact
                values, and γ = n^(−1/5) beside the fixed one
``statistic``   "hsic"; "eipm" (γ = 1); under "corrected" also "eipm-shrinking" (γ = n^(−1/5), against the true EIPM)
``n``, ``repeat``
``estimate``, ``truth``, ``error``   error is the absolute difference

:func:`slopes` fits them: {statistic: Slope(value, low, high)}.
"""
