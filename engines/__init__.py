"""Real engines as judges of exported grammars and templates. Each has an environment of its own in .engines."""
