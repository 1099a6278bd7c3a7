"""Export formats: one module for each notation of a grammar, and for each description of a dialect."""
