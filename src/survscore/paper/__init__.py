"""Complete studies that can be run with one command."""
