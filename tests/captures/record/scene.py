"""What is asked, found and answered in every recording, all invented. Recipes and the scripted model use it."""

QUESTION = "On which evenings does the Vellin observatory open its dome, and what does a guided hour cost?"
FOLLOW_UP = "Is that also the price for pupils?"
FAILING = "Which comet can be seen from the Vellin observatory tonight?"
"""The scripted model refuses this one."""

PASSAGES = (
    "The dome of the Vellin observatory is open on Tuesdays and Fridays from 21:00 until midnight.",
    "A guided hour at the telescope costs 14 thalers, for pupils 6; the fee is paid at the gate.",
)
ANSWERS = {
    QUESTION: "The dome is open on Tuesdays and Fridays, and a guided hour costs 14 thalers.",
    FOLLOW_UP: "No, pupils pay 6 thalers for the guided hour.",
}
SYSTEM = "You answer visitors of the Vellin observatory. Use the visitors' guide."
QUERY = "dome opening evenings guided hour price"
"""What the model hands to a search tool: a rewritten query, never the question."""

FOUND = "\n\n".join(PASSAGES)
"""What a search tool returns."""

PROMPT = "Answer by these notes:\n{notes}\n\nQuestion: {question}"
"""The prompt of a plain RAG flow."""

NOTES = "\n".join(f"- {passage}" for passage in PASSAGES)


def search(query: str) -> str:
    """Search the visitors' guide."""
    return FOUND if query else ""
