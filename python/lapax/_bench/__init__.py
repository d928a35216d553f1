"""The benchmark behind `python -m lapax bench`: `lapax.bench` is its command line.

plan → measure → rows → goals, report, charts; conditions.py measures chosen rows on a busy machine.
"""
