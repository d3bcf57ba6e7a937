"""How many examples a property tries: few enough for every run, or very many in `make fuzz`.

The profile `ci` (the default) is the same every time; `fuzz` draws new examples and remembers the
failing ones.
"""

import os

from hypothesis import HealthCheck, settings

_FUZZ_EXAMPLES = 20_000
# Generated clusters are large for hypothesis; no test here is timed.
_CALM = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


def load_profile() -> None:
    """Register the profiles and load the one that HYPOTHESIS_PROFILE names, `ci` without it."""
    settings.register_profile(
        "ci", derandomize=True, deadline=None, database=None, suppress_health_check=_CALM
    )
    settings.register_profile(
        "fuzz",
        max_examples=_FUZZ_EXAMPLES,
        deadline=None,
        print_blob=True,
        suppress_health_check=_CALM,
    )
    settings.load_profile(_profile())


def examples(count: int) -> settings:
    """Return a decorator that tries `count` examples in a normal run and at least 20,000 in `make fuzz`."""
    return settings(max_examples=max(count, _FUZZ_EXAMPLES) if _profile() == "fuzz" else count)


def _profile() -> str:
    return os.environ.get("HYPOTHESIS_PROFILE", "ci")
