"""The layouts that dialects share. Each reads its layout from a source as it comes, and writes it."""
