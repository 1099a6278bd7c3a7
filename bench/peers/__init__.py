"""Other gateways beside ours: installed in environments of their own, started in front of the same upstream.

    with litellm({"some-model": "http://127.0.0.1:8000/v1"}) as peer:
        ...  # ask peer.base_url for peer.ask("some-model")

Each is installed under `.peers/` when it is first asked for (`bench.peers.install`), listens on loopback only, has a
home and an environment of its own, and ends with its block or with this process, whichever comes first. Linux only.
"""

from bench.peers.ccr import ccr
from bench.peers.litellm import litellm
from bench.peers.running import Peer

__all__ = ["Peer", "ccr", "litellm"]
