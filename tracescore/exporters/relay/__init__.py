"""What passes on to the next collector: whole requests at once, or spans kept back until they carry scores."""
