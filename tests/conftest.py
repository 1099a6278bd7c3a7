"""What holds for all tests."""

from __future__ import annotations

import os

from hypothesis import settings

# A busy machine is no failure: time is measured where it matters, by ratio. The same code gives the same result twice;
# new examples are for `make fuzz`.
settings.register_profile("project", deadline=None, print_blob=True, derandomize=True)
settings.register_profile("search", deadline=None, print_blob=True, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "project"))
