"""What speaks HTTP: ASGI and listeners, an OpenAI-style endpoint, retries and encodings of the wire."""
