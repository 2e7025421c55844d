r"""Seconds of one epoch of each penalty, over the number of rows.

Records (`runtime-{protocol}.jsonl`), one for each device, method, n and repeat:

``experiment``   "runtime"
``protocol``     "published": first epoch of a fresh model, no warm-up, no synchronisation, FREM as a loop over the rows
                 of a batch. "corrected": epochs after one of warm-up, device synchronised
``device``       "cpu" or "cuda"; ``device_name`` in words, ``threads`` of the processor
``method``       "frhsic", "reg-gdp", "none", "hsic", and of FREM "frem-loop" (published: all rows, one by one),
                 "frem-32" (32 anchors, vectorised), "frem-all" (all rows, vectorised)
``n``, ``repeat``, ``seconds``   of one epoch, batches of 256
"""
