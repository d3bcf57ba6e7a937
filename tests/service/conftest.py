"""The service says little while it is tested."""

import logging

import pytest
import structlog


@pytest.fixture(autouse=True)
def _quiet():
    """Let only what is critical be said."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.reset_defaults()
