"""Callback for the LiteLLM proxy that parses the calls in the replies of its models.

    # config.yaml
    litellm_settings:
      callbacks: ["interlingua.integrations.litellm_callback.callback"]

It changes chat completions, streamed and whole. Replies of other kinds pass unchanged.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from litellm.integrations.custom_logger import CustomLogger
from litellm.types.utils import ModelResponse, ModelResponseStream

from interlingua.integrations.chunk_translator import ChunkTranslator
from interlingua.integrations.reply_stream import choose_dialect, find_call_ids

__all__ = ["InterlinguaCallback", "callback"]


class InterlinguaCallback(CustomLogger):
    """Callback that translates each reply with the tools of its request."""

    async def async_post_call_success_hook(
        self,
        data: dict[str, Any],
        user_api_key_dict: Any,  # noqa: ARG002 (LiteLLM's interface)
        response: Any,
    ) -> Any:
        """Return a complete reply with its calls."""
        if type(response) is not ModelResponse:
            return response
        translator = _open_translator(data, response.model)
        return ModelResponse(**translator.translate(_to_json(response)))

    async def async_post_call_streaming_iterator_hook(
        self,
        user_api_key_dict: Any,  # noqa: ARG002 (LiteLLM's interface)
        response: Any,
        request_data: dict[str, Any],
    ) -> AsyncIterator[Any]:
        """Yield the chunks of a reply with its calls."""
        translator: ChunkTranslator | None = None
        async for chunk in response:
            if not isinstance(chunk, ModelResponseStream):
                yield chunk
                continue
            if translator is None:
                translator = _open_translator(request_data, chunk.model)
            for translated in translator.feed(_to_json(chunk)):
                yield ModelResponseStream(**translated)
        for translated in translator.close() if translator is not None else ():
            yield ModelResponseStream(**translated)


def _open_translator(request: dict[str, Any], model: str | None) -> ChunkTranslator:
    return ChunkTranslator(
        choose_dialect(_upstream_model(request), model, request.get("model")),
        request.get("tools") or [],
        request.get("tool_choice"),
        taken_ids=find_call_ids(request.get("messages") or ()),
    )


def _upstream_model(request: dict[str, Any]) -> str | None:
    """Return the model of the deployment that the proxy has chosen; clients know only the name of its group."""
    metadata = request.get("metadata") or request.get("litellm_metadata") or {}
    deployment = metadata.get("deployment") if isinstance(metadata, dict) else None
    return deployment if isinstance(deployment, str) else None


def _to_json(response: Any) -> dict[str, Any]:
    body: dict[str, Any] = response.model_dump(mode="json", exclude_none=True)
    return body


callback = InterlinguaCallback()
"""The callback that a proxy's configuration names."""
