"""The fair comparison: every method with its own settings tuned by the same search, then tested once.

`methods` says what is compared and what is searched, `rows` which rows tune and which test, `penalties` and `fleets`
train all trials of a method at once, `trees` fits boosting and transport, `reading` turns records into tables.
"""
