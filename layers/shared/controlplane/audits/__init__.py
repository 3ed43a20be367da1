"""Audits of live websites: their schedules, their runs, and the reports of the runs.

An audit belongs to a website, which lists it in the project's item, and is deleted with it. Runs are kept.
"""
