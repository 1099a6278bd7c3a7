"""Shape: messages with headers that name their channel and recipient."""
