"""Configurations: queues.yaml and Kueue manifests to one model, with errors that name file, line and path.

`load` reads files and folders, `from_mapping` what was parsed already. Both refuse a configuration
as a whole, with a `ConfigurationError` that holds everything that is wrong with it.
"""

from evsched.config.errors import ConfigurationError, Fault
from evsched.config.loading import Loaded, from_mapping, load, load_mapping, load_texts

__all__ = [
    "ConfigurationError",
    "Fault",
    "Loaded",
    "from_mapping",
    "load",
    "load_mapping",
    "load_texts",
]
