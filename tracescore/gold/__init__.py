"""Correctness on a schedule: questions with known answers are asked of the app, their scores are series of their own.

items.py reads the set, targets/ ask the app, run.py makes one run, store.py keeps it, compare.py holds it against
the pinned runs, and series.py and report.py show it; runner.py decides when. How an interaction is scored comes from
outside, so that nothing here knows judges or evaluators.
"""
