"""Console I/O and options that several commands share."""
