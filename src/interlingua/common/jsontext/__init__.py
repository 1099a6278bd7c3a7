"""JSON text: scanning, coding, partial values, repair."""
