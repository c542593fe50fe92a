"""Correctness on a schedule: questions with known answers are asked of the app, their scores are series of their own.

items.py reads the set, targets/ ask the app, run.py makes one run, results.py is what it found, store.py keeps it,
compare.py holds it against the pinned runs, and series.py, view.py and report.py show it. schedule.py says when,
runner.py runs it then. trace_ids.py marks the traces that gold requests cause, and traffic.py keeps these out of the
live figures. How an interaction is scored comes from outside, so that nothing here knows judges or evaluators.
"""
