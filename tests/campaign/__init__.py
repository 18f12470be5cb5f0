"""Many random games, hard ones above all, against what every answer of the library must keep.

``python -m tests.campaign run --games 1000 --out FOLDER`` plays them. Only the public names of
spgls are used, so the same games can be played by two versions of it and compared.
"""
