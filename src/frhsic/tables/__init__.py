"""Tables of any kind: read files, learn their schema, say what is wrong, and encode as numbers.

Estimators, datasets and the command line read tables by these functions. The default models of
:mod:`frhsic.estimators` code the columns of a schema for LightGBM themselves.
"""
