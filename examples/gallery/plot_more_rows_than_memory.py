"""
Audit a table that is larger than memory
========================================

``frhsic.distributed.audit`` reads a Dask data frame one partition at a time, in two passes. The
gap, its curve and HSIC use every row, but only one partition is in memory.
"""

# %%
# We write 20 files of 10,000 rows. In practice, your files already exist and are much longer.

import tempfile
from pathlib import Path

import dask.dataframe as dd
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import frhsic
from frhsic import distributed
from frhsic.auditing import Settings

folder = tempfile.TemporaryDirectory()
FILES = 20
for number in range(FILES):
    rng = np.random.default_rng(number)
    age = rng.uniform(20, 70, size=10_000).round()
    score = 0.4 + 0.05 * np.sin(age / 8) + 0.1 * rng.normal(size=10_000)
    table = pd.DataFrame({"age": age, "score": score})
    table.to_parquet(Path(folder.name, f"scores-{number:02d}.parquet"))

# %%
# The call is the same as in memory, with column names instead of arrays. Inside
# ``distributed.cluster("local")`` it would use all cores, and inside ``cluster("tcp://...")`` other
# machines.

quick = Settings(max_rows=500, probe_rows=1000, resamples=99)
frame = dd.read_parquet(f"{folder.name}/*.parquet")
audit = distributed.audit(frame, sensitive="age", score="score", settings=quick, sample_rows=5000)
for number in audit["age"].all_rows.numbers:
    print(f"{number.key:22s} {number.value:8.4f}   from {number.rows:,} rows")

# %%
# What do we gain from using all rows? From the first file alone, the interval for the same gap is
# four to five times as wide.

first = pd.read_parquet(Path(folder.name, "scores-00.parquet"))
one_file = frhsic.gdp(first["score"], first["age"])
gap = audit["age"].all_rows["gdp"]
print(f"one file: {one_file.interval[0]:.4f} to {one_file.interval[1]:.4f}")
print(f"all files: {gap.interval.low:.4f} to {gap.interval.high:.4f}")

# %%
# The curve with its band, from 200,000 rows.

curve = audit["age"].all_rows.curves["gdp"]
fig, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
ax.fill_between(curve.grid, curve.low, curve.high, alpha=0.3, label="95 % band for the whole curve")
ax.plot(curve.grid, curve.mean, marker="o", markersize=3, label="mean score")
ax.axhline(curve.overall, color="black", linestyle=":", label="overall mean")
ax.set(xlabel="age (years)", ylabel="mean score", title="Mean score by age, 200,000 rows")
ax.legend()
plt.show()
folder.cleanup()
