"""Evidence recall in long conversations: LoCoMo loaded into stores, questions gathered and compiled."""
