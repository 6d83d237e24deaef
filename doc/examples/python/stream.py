# SPDX-License-Identifier: ISC
"""Writes output as it comes, answers a question of the command, and tells how it ended."""
import asyncio
import sys

import execd.aio

COMMAND = "echo working; echo a warning >&2; read answer; echo the answer was $answer; exit 3"


async def main() -> int:
    async with execd.aio.connect() as box:
        process = await box.start(COMMAND, stdin=True)
        async for output in process:
            print(output.stream, output.data.decode(), end="", flush=True)
            if output.data.endswith(b"working\n"):
                await process.write("yes\n")
        how = await process.wait()
        print("it ended with", how.exit_code)
        return how.exit_code


sys.exit(asyncio.run(main()))
