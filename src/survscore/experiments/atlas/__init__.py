"""The atlas: every data set with known closing date, the same models, and which of them each score prefers."""
