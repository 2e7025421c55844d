"""Tables of any kind: read files, learn the schema of a table, check it for problems, and encode it
as numbers.

Estimators, datasets and the command line read tables with these functions. The default models of
:mod:`frhsic.estimators` encode the columns of a schema for LightGBM themselves.
"""

from frhsic._lazy import lazy_attributes

__all__ = ["check"]
__getattr__, __dir__ = lazy_attributes(__name__, {"check": "checking"})
