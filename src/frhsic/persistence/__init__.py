"""Save fitted models to one file and load them again.

A file is an uncompressed zip archive. `model.json` holds versions, parameters, coefficients and the frontier;
`weights.safetensors` the weights of a network; `schema.json` and the arrays beside it are scikit-learn, LightGBM and
XGBoost models in the format of skops. Training rows are not in it, except in models that are made of them, such as
nearest neighbours and couplings, whose columns are among the weights.

Loading runs no code of the file. JSON and weights are data. Of a skops schema, every node is compared with a list of
classes before anything is built: the estimators of scikit-learn, LightGBM and XGBoost, the data that they hold, and
nothing that can be called, so that predictions run no code of the file either. An uncompressed file cannot unpack to
more than its own size, and trees are checked to have an end. That is all that is promised. A forged model predicts what
its author likes, and a forged booster, tree or table can crash the process, because those libraries do not check all of
them: load models only from people you trust.

To save another class, add it to `KINDS` of `files.py` with a `Kind`, and its fitted attributes that
are plain data to `PLAIN`. A dataclass among them belongs into `CLASSES`.
"""

from frhsic.persistence.files import load, save

__all__ = ["load", "save"]
