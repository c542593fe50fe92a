"""How far the judge is from people: labels, where they are kept, and the correction that follows from them."""
