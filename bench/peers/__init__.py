"""Other gateways to compare with: installed in their own environments, started in front of the same upstream.

    with litellm({"some-model": "http://127.0.0.1:8000/v1"}) as peer:
        ...  # send requests to peer.base_url, for the model peer.ask("some-model")

Each is installed under `.peers/` when it is first used (`bench.peers.install`), listens on loopback only, has its own
home and environment, and ends with its block or with this process, whichever comes first. Linux only.
"""

from bench.peers.ccr import ccr
from bench.peers.forwarding import agentic_api, sglang_router, smg
from bench.peers.litellm import litellm
from bench.peers.running import Peer

__all__ = ["Peer", "agentic_api", "ccr", "litellm", "sglang_router", "smg"]
