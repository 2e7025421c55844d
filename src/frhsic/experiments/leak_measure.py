r"""What is left of S in a representation: probes, the worst of fresh heads, and the worst head there is.

Records (`leak-{protocol}.jsonl`, protocol "corrected"), one for each kept model of "tradeoff", which is for every
dataset, method and repeat < 5 the model that validation rows choose at 1 % of performance:

``experiment``        "leak"
``protocol``, ``dataset``, ``method``, ``weight``, ``repeat``   as in the sweep
``performance``       of the deployed head, on test rows
``gdp``, ``gdp_standardized``   of the deployed head, on probabilities
``worst_gdp``, ``worst_gdp_head``                     largest GDP over five fresh heads, and which it is
``worst_gdp_standardized``, ``worst_standardized_head``   the same, divided by the standard deviation of the outputs
``heads``             {head: [performance, gdp, gdp_standardized]}
``probe_r2``          {probe: R² of predicting S from Z on test rows}; ``best_probe_r2`` the largest
``worst_head_gap``    root of the tight bound: the largest mean-square gap of a head of norm 1 in the RKHS of a Gaussian at
                      the median distance of Z, on ≤ 2,000 test rows; ``deployed_gap`` that of the deployed probabilities
"""
