"""The stages between the parts and what holds them together: nothing accepted is lost, nothing counted twice."""
