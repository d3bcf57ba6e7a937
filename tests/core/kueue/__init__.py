"""Tests of Kueue's policies."""
