"""Tools as Python functions: schema, calls, results."""
