"""Settings of all tests: in tests/, and in the folders of the command line and the analysis."""

import os

from hypothesis import HealthCheck, settings

# A change lands or not with the same examples each time: only `make fuzz` searches at random. A busy machine is slow.
settings.register_profile(
    "assent",
    derandomize="FUZZ_EXAMPLES" not in os.environ,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("assent")
