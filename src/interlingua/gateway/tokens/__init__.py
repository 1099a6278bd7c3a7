"""Token estimates and their calibration."""
