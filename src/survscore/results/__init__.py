"""What comes out: numbers, long tables, and how they are printed."""
