"""Viewer of trace files, and the front of the planner. Imports no torch."""
