"""Replies as a plain client reads them: without any correction."""

from interlingua.verification.reply_reading.client_reply import CallDelta, ClientCall, ClientReply
from interlingua.verification.reply_reading.reply_reader import describe_unreadable, read_reply

__all__ = ["CallDelta", "ClientCall", "ClientReply", "describe_unreadable", "read_reply"]
