r"""Fresh heads on frozen representations: how far GDP spreads over kinds of heads.

Records (`transfer-heads-{protocol}.jsonl`), one for each model of the experiment "transfer" and each head:

``experiment``   "transfer-heads"
``protocol``, ``dataset``, ``method``, ``weight``, ``repeat``   as in the sweep
``head``         published: "linear", "mlp", "forest", "svm"
``performance``  of that head on test rows (accuracy or mean squared error)
``gdp``          published: on logits of the torch heads and on hard labels of forest and SVM, uniform grid, bandwidth 0.1;
                 corrected: on probabilities for every head, population weighting
``gdp_standardized``  corrected only: divided by the standard deviation of the outputs
"""
