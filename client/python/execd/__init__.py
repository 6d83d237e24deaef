# SPDX-License-Identifier: ISC
"""A client of execd, and of every other exec-server (`codex exec-server`).

	import execd

	with execd.connect() as box:
	    r = box.run("make check", cwd="/srv/work", sandbox="workspace-write")
	    print(r.stdout, r.stderr, r.exit_code)

`execd.aio` is the same client for asyncio. doc/python.md has the whole surface.
"""
from .errors import (AnswerLost, AuthenticationFailed, CertificateRefused, CommandFailed, ConfigError, ConnectionLost,
                     ExecdError, FileChanged, InvalidParams, LimitExceeded, MissingCapability, NotFound, OperatingSystemError,
                     OutputLost, OutputUnread, ProcessLost, ProtocolError, Refused, SandboxRefused, ServerError,
                     SessionAttached, SessionLost, SessionTaken, StartFailed, StdinClosed, Unreachable, UnknownMethod)
from .files import Entry, Metadata, Walk
from .http import HttpResponse
from .process import Exit, Output, Result
from .sync import Box, Files, Forward, HttpStream, Process, Watch, connect
from .watch import Change

__all__ = [
    "AnswerLost", "AuthenticationFailed", "Box", "CertificateRefused", "Change", "CommandFailed", "ConfigError",
    "ConnectionLost", "Entry", "ExecdError", "Exit", "FileChanged", "Files", "Forward", "HttpResponse", "HttpStream",
    "InvalidParams", "LimitExceeded", "Metadata", "MissingCapability", "NotFound", "OperatingSystemError", "Output",
    "OutputLost", "OutputUnread", "Process", "ProcessLost", "ProtocolError", "Refused", "Result", "SandboxRefused",
    "ServerError", "SessionAttached", "SessionLost", "SessionTaken", "StartFailed", "StdinClosed", "Unreachable",
    "UnknownMethod", "Walk", "Watch", "connect",
]
