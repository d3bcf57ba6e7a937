"""The service says little while it is tested."""

import logging

import pytest
import structlog

from tests.service.breaking import Broken


@pytest.fixture(autouse=True)
def _quiet():
    """Let only what is critical be said."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.reset_defaults()


@pytest.fixture
def broken(monkeypatch):
    """Return what lets functions of the core raise."""
    return Broken(monkeypatch)
