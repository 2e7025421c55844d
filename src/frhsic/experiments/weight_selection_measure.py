r"""Choosing λ by a test of independence on validation rows, by the published test and by those that hold their level.

Records (`weight-tests-{protocol}.jsonl`), one for each model of the experiment "weight-selection":

``experiment``   "weight-tests"
``protocol``, ``dataset``, ``method``, ``weight``, ``repeat``   as in the sweep
``n``            validation rows (at most 1,000)
``hsic``         statistic on them; ``n_hsic`` n times that
``published_threshold`` (of n·HSIC), ``published_pvalue``, ``published_rejected``
``threshold`` (of n·HSIC), ``pvalue``, ``rejected``            exact permutation moments
``gretton_threshold``, ``gretton_pvalue``, ``gretton_rejected``
``performance``, ``gdp``   of the model, on test rows, by the protocol's own convention

:func:`selected` gives for each dataset and repeat the smallest λ that is not rejected, or None.
"""
