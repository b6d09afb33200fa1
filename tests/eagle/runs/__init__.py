"""Tests of runs, events and phases."""
