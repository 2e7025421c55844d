r"""The smallest eigenvalue of the centred Gram matrix of S against the bandwidth, and its two limits.

Records (`bandwidth-scaling-{protocol}.jsonl`), one for each dataset and bandwidth:

``experiment``   "bandwidth-scaling"
``protocol``     "published": float32, smallest eigenvalue above 1e-6 of the largest. "corrected": float64
``dataset``      "adult", "crime" (1,500 rows); under "corrected" also "distinct": 200 different values, for the limits
``sigma``, ``n``, ``distinct``   bandwidth, rows, different values of S
``largest``      largest eigenvalue of HLH/n
``smallest``     λ̂_S: the smallest above ``cut`` times the largest, ``kept`` how many are above
``cut``          1e-6 under "published", 1e-12 under "corrected"
``floor``        1e-6 · largest: where the published rule stops whatever the data
``eigenvalues``  the twelve largest
``last``         the smallest of the distinct − 1 eigenvalues that are not zero by construction

:func:`scaling_slope` is the slope of log smallest on log sigma.
"""
