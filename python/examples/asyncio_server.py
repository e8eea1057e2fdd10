"""A small inference server whose requests wait in a queue and are answered in batches, seen on a timeline.

Each request is a coroutine. Its slices show when it ran, and arrows lead over the time in which others did.

Run it and look at it:

    python examples/asyncio_server.py
    stepscope view runs/asyncio
"""

import asyncio
import json
import time

import stepscope
from stepscope import tracing

RUN = "runs/asyncio"
BATCH_SIZE = 8


class Model:
    """Answers batches of requests, one batch at a time."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[tuple[int, asyncio.Future[int]]] = asyncio.Queue()

    async def infer(self, number: int) -> int:
        answer = asyncio.get_running_loop().create_future()
        await self.queue.put((number, answer))
        return await answer

    async def serve(self) -> None:
        while True:
            batch = [await self.queue.get()]
            while len(batch) < BATCH_SIZE and not self.queue.empty():
                batch.append(self.queue.get_nowait())
            results = await asyncio.to_thread(self.compute, [number for number, _ in batch])
            for (_, answer), result in zip(batch, results, strict=True):
                answer.set_result(result)

    @tracing.traced(name="compute", args=True)
    def compute(self, numbers: list[int]) -> list[int]:
        time.sleep(0.005 + 0.001 * len(numbers))
        return [number**2 for number in numbers]


model = Model()


@tracing.traced(name="request", category="server")
async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    request = json.loads(await reader.readline())
    result = await model.infer(request["number"])
    writer.write(json.dumps({"square": result}).encode() + b"\n")
    await writer.drain()
    writer.close()
    await writer.wait_closed()


async def ask(port: int, number: int) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(json.dumps({"number": number}).encode() + b"\n")
    answer = json.loads(await reader.readline())
    writer.close()
    await writer.wait_closed()
    return answer["square"]


async def main() -> None:
    serving = asyncio.create_task(model.serve())
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        for _ in range(10):
            squares = await asyncio.gather(*(ask(port, number) for number in range(20)))
            await asyncio.sleep(0.01)
    serving.cancel()
    print(f"answered: {squares}")


if __name__ == "__main__":
    with stepscope.record(f"{RUN}/trace"):
        asyncio.run(main())
