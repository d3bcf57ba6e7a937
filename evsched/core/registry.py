"""Which families there are: the format of a configuration chooses one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from events.configuration import CustomSpec, KueueSpec, YunikornSpec
from evsched.core.kueue.family import KueueFamily
from evsched.core.yunikorn.family import YunikornFamily

if TYPE_CHECKING:
    from events.configuration import Configuration
    from evsched.core.family import Family

FAMILIES: dict[str, Family] = {"yunikorn": YunikornFamily(), "kueue": KueueFamily()}
"""By format. A family is added before the first log is read; a log that names one needs it for ever."""

_FORMATS = {spec: str(spec.__struct_config__.tag) for spec in (YunikornSpec, KueueSpec)}


def format_of(configuration: Configuration) -> str:
    """Return the format of a configuration, by which its family is registered: ``custom/NAME`` for an added one."""
    if isinstance(configuration, CustomSpec):
        return f"custom/{configuration.family}"
    return _FORMATS[type(configuration)]


def family_of(configuration: Configuration) -> Family:
    """Return the family of a configuration; raises KeyError for a format that no family is registered for."""
    return FAMILIES[format_of(configuration)]


def admits_by_quota(configuration: Configuration | None) -> bool:
    """Tell whether admission is by quota alone, without nodes; not so before the first configuration."""
    return configuration is not None and family_of(configuration).by_quota
