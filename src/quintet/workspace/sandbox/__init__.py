"""The wall around commands. What may be written and reached is a Profile; whether a wall can be built here is a State.

Knows no turn, no mode and no approval: those are judged elsewhere, before anything comes here.
"""
