r"""Several sensitive columns: what they cost in time, and what they cost in error.

Records (`high-dimensional-{protocol}.jsonl`) of two kinds:

``experiment``  "high-dimensional"
``part``        "time": seconds of training on 2,000 rows of Adult against the number of sensitive columns; both
                protocols. "error": estimates at n rows of a Gaussian model whose answer is known; "corrected" only
``dim_s``       number of sensitive columns

of "time": ``method`` ("frhsic", "frem-loop"; corrected also "frem-32"), ``columns`` (their names), ``device``,
``repeat``, ``seconds`` (of one epoch; published: the mean over 30 with no warm-up)

of "error": ``statistic`` ("hsic", "hsic-unbiased", "eipm"), ``n``, ``repeat``, ``estimate``, ``truth``, ``error``,
``relative_error`` (error / truth)
"""
