"""Which score would have selected the right model, had follow-up ended earlier."""
