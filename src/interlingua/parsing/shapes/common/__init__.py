"""Code that several shapes share."""
