"""What holds for all tests."""

from __future__ import annotations

from hypothesis import settings

# A busy machine is no failure: time is measured where it matters, by ratio.
settings.register_profile("project", deadline=None, print_blob=True)
settings.load_profile("project")
