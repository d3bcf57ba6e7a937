"""What the service says about itself: structured lines on the standard error, one event each.

Names that came from outside are values, never part of the message, and the renderers escape control
characters; nothing here ever sees a secret, because addresses are shown without their user part and
passwords live in `KafkaSecurity` alone.
"""

from __future__ import annotations

import logging
import sys
from typing import Literal

import structlog


def configure(form: Literal["console", "json"], *, verbose: bool = False) -> None:
    """Set up the lines: ``console`` for people, ``json`` for machines."""
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if form == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.DEBUG if verbose else logging.INFO
        ),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s %(message)s"
    )
    # The client tells of every refused connection of a broker that is away, and not in our form;
    # our own line says it once.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL + 1)
