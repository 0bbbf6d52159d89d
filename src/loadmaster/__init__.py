"""Loadmaster: a context compiler for LLM agents.

A request, candidates, policies and a token budget go in; out comes the exact bundle that the model
will see, with a decision trace, or a compile failure that names the excess and what blocks.
"""

from loadmaster.compiler import VERSION, Compiler, compile_document
from loadmaster.core.blocks import PLAIN, TAGGED, PlainRenderer, Renderer, TaggedRenderer
from loadmaster.core.capabilities import ModelRow, ModelTable
from loadmaster.core.contract import (
    Budget,
    Candidate,
    Conflict,
    Form,
    Freshness,
    Observation,
    Request,
    Source,
)
from loadmaster.core.failures.failure import CompileError, CompileFailure, Fact, Relaxation, Remedy
from loadmaster.core.faults import Fault, InvalidInput
from loadmaster.core.profiles import LayerRule, Profile, ProfileSet
from loadmaster.core.result import Block, Bundle, Omission
from loadmaster.core.tokens import EncodingCounter, EstimateCounter, TokenCount, TokenCounter

__version__ = VERSION

__all__ = [
    "PLAIN",
    "TAGGED",
    "Block",
    "Budget",
    "Bundle",
    "Candidate",
    "CompileError",
    "CompileFailure",
    "Compiler",
    "Conflict",
    "EncodingCounter",
    "EstimateCounter",
    "Fact",
    "Fault",
    "Form",
    "Freshness",
    "InvalidInput",
    "LayerRule",
    "ModelRow",
    "ModelTable",
    "Observation",
    "Omission",
    "PlainRenderer",
    "Profile",
    "ProfileSet",
    "Relaxation",
    "Remedy",
    "Renderer",
    "Request",
    "Source",
    "TaggedRenderer",
    "TokenCount",
    "TokenCounter",
    "compile_document",
]
