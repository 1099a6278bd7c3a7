"""Registry of all dialects, by name and by model id. Model ids are matched in the order of the list."""

from __future__ import annotations

from interlingua.dialects.families import (
    apertus,
    cohere,
    deepseek,
    dots,
    dsml,
    functionary,
    functools,
    gemma4,
    gigachat,
    glm,
    granite,
    harmony,
    hermes,
    hunyuan,
    hyperclovax,
    inkling,
    internlm2,
    k2_horizon,
    kimi_k2,
    kimi_k3,
    lfm2,
    llama3_json,
    minicpm5,
    minimax_m2,
    minimax_m3,
    mistral,
    mistral_v3,
    muse,
    nemotron,
    olmo3,
    openpangu,
    plamo3,
    pythonic,
    qwen3_coder,
    rwkv,
    seed_oss,
    solar_open,
    standard,
    step3,
    tool_calls_array,
    xlam,
)
from interlingua.errors import UnknownDialect, expect_type
from interlingua.parsing.detection import detection_dialect
from interlingua.parsing.dialect import Dialect

__all__ = ["dialect_for", "get_dialect", "list_dialects"]

STANDARD_DIALECT = standard.DIALECT
ALL_DIALECTS = (
    kimi_k3.DIALECT,
    kimi_k2.DIALECT,
    xlam.DIALECT,  # Llama-xLAM
    functools.DIALECT,  # llama-3-firefunction
    deepseek.V3,  # DeepSeek-R1-Distill-Qwen
    glm.IQUEST_CODER_V2,  # before the rest of IQuest-Coder
    qwen3_coder.DIALECT,  # before the rest of Qwen3; Qwen3.5-9B-DeepSeek-V4-Flash
    hermes.DIALECT,  # Hermes-3-Llama, Qwen3-8B-DeepSeek-v3.2-Distill
    deepseek.V31,  # V3.2-Exp
    dsml.V32,
    dsml.V41,  # before the rest of V4
    dsml.V4,
    glm.GLM45,  # Laguna-XS before the rest of Laguna
    glm.GLM47,
    glm.IQUEST_Q1,
    harmony.DIALECT,
    tool_calls_array.MINIMAX_M1,
    minimax_m2.DIALECT,
    minimax_m3.DIALECT,
    mistral_v3.DIALECT,
    mistral.V11,  # Magistral of 2506 before the rest of Magistral
    mistral.V13,
    nemotron.DIALECT,  # Llama-3.3-Nemotron-Super
    pythonic.DIALECT,  # ToolACE-2-Llama-3.1
    llama3_json.DIALECT,
    gemma4.GEMMA4,
    gemma4.FUNCTIONGEMMA,
    seed_oss.DIALECT,
    qwen3_coder.ZAYA,
    step3.DIALECT,
    tool_calls_array.DIALECT,
    hunyuan.HY4,
    hunyuan.HY3,
    k2_horizon.DIALECT,
    plamo3.DIALECT,
    openpangu.DIALECT,
    hyperclovax.DIALECT,
    rwkv.DIALECT,
    granite.GRANITE3,
    granite.GRANITE_20B,
    cohere.DIALECT,
    cohere.COMMAND_R_PLUS,
    cohere.COHERE_CMD5,
    lfm2.DIALECT,
    muse.DIALECT,
    inkling.DIALECT,
    minicpm5.DIALECT,
    dots.DIALECT,
    olmo3.DIALECT,
    functools.PHI4,
    internlm2.DIALECT,
    apertus.DIALECT,
    solar_open.SOLAR_OPEN2,  # Solar-Open-2 before the rest of Solar-Open
    solar_open.DIALECT,
    dsml.GIGACHAT35,
    gigachat.GIGACHAT31,
    gigachat.GIGACHAT3,
    functionary.V31,
    functionary.V32,
    hermes.ERNIE45,
    hermes.LONGCAT,
    STANDARD_DIALECT,
)
DEMO_PREFIX = "demo/"
DETECT_DIALECT = detection_dialect(ALL_DIALECTS)
DIALECTS_BY_NAME = {dialect.name: dialect for dialect in (*ALL_DIALECTS, DETECT_DIALECT)}


def list_dialects() -> tuple[Dialect, ...]:
    """Return all known dialects."""
    return ALL_DIALECTS


def get_dialect(dialect: str | Dialect) -> Dialect:
    if isinstance(dialect, Dialect):
        return dialect
    registered = DIALECTS_BY_NAME.get(str(dialect))
    if registered is None:
        raise UnknownDialect(dialect, DIALECTS_BY_NAME)
    return registered


def dialect_for(model: str) -> Dialect:
    """Return the dialect of this model; the standard dialect if the id is unknown.

    Models of the demo and of scripted servers are called demo/<dialect>.
    """
    expect_type(model, str, "a model id is str", "for example 'moonshotai/kimi-k2-0905'")
    if model.startswith(DEMO_PREFIX) and (named := DIALECTS_BY_NAME.get(model.removeprefix(DEMO_PREFIX))):
        return named
    return next((dialect for dialect in ALL_DIALECTS if dialect.speaks(model)), STANDARD_DIALECT)
