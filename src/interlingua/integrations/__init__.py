"""Plugins that parse replies inside engines and proxies. Each module imports the package that it extends."""
