"""One file per convention."""
