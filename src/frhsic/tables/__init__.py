"""Tables of any kind: read files, learn their schema, say what is wrong, and encode as numbers.

Estimators, datasets and the command line take in tables by these functions and no others.
"""
