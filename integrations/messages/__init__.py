"""OpenAI-form chat histories in; bundles whose ``messages`` and ``tools`` are ready to send out.

`compile_messages` does both steps. `candidates_of` does the first alone, for a caller who adds memory
or documents to a history, or builds the request.
"""

from loadmaster.integrations.messages.candidates import candidates_of
from loadmaster.integrations.messages.compiling import compile_messages

__all__ = ["candidates_of", "compile_messages"]
