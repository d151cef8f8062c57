"""The others, each in a one-pass online setting its own documentation describes, on one thread as we are.

A module offers `contestants(material)` for the clock and `entrants()` for the table of accuracy.
"""
