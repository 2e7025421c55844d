"""The fair comparison: every method with its own settings tuned by the same search, then tested
once.

`rows` has the tables and says which rows tune and which test, `penalties` and `paths` train all
trials of a method at once, the study `tuned` runs the search and shows what came of it.
"""
