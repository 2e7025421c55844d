r"""Mutual information of Z and S on the test rows of the sweep, as published and as it should be estimated.

Records (`mutual-information-{protocol}.jsonl`), one for each model of the first five repeats of "tradeoff":

``experiment``    "mutual-information"
``protocol``, ``dataset``, ``method``, ``weight``, ``repeat``, ``performance``   as in the sweep
``mi``            nearest neighbours with strict counts, standardised; may be negative
``mi_published``  inclusive counts, unscaled, clipped at zero
"""
