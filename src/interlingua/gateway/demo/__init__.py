"""The demo model: scripted replies in any dialect's native text, with no key and no network.

`prompt` reads what is asked for, `filling` makes arguments up, `script` decides, `native` writes, `server` sends.
"""

from interlingua.gateway.demo.server import DEMO_DIALECTS, start_demo_server

__all__ = ["DEMO_DIALECTS", "start_demo_server"]
