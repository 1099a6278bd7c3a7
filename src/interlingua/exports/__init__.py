"""Exports: a dialect as a grammar, a template or JSON, for programs that constrain or parse a model on their own."""
