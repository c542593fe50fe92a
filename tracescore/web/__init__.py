"""The page: the ledger, the scores and the evidence behind each score. Holds user text, so it guards itself."""
