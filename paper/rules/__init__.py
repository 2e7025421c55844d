"""The rules of the pages: a module for each page with its phrases, under the page's name.

`comparison`, `claims` and `published` have numbers of several pages; `records`, `open_whole` and
`reading` have none.
"""
