"""One file per family of libraries: its set-ups, and the script that is run inside the venv."""
