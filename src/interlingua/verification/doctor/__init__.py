"""Doctor: checks of an upstream and its model that take seconds and a few hundred tokens."""

from interlingua.verification.doctor.check import CheckResult, UpstreamReport
from interlingua.verification.doctor.examination import examine

__all__ = ["CheckResult", "UpstreamReport", "examine"]
