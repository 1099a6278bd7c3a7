"""Verification of a model at a provider: does it call tools, and if not, who loses the calls.

`samples` are the requests, `probing` sends them, `reply_reading` reads the replies as plain clients do, `judging` finds
failures, `attribution` says who caused them, `run` puts these together for many requests, `card` shows the result, and
`doctor` checks upstreams within seconds. Only `probing`, `run` and `doctor` use sockets and clocks.
"""
