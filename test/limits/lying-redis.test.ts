import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { RateStoreError } from "../../src/limits/rates.ts";
import { openRedisRates } from "../../src/limits/redis.ts";
import { demandOf, subjectOf } from "./demands.ts";

/** Starts a server that answers each script with this reply of Redis' protocol, whatever it was asked. */
async function startLying(reply: string): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on("error", () => undefined));
    socket.on("data", (bytes) => {
      // Each command is a list, which begins with its length.
      const commands = bytes
        .toString()
        .split(/^\*\d+\r\n/m)
        .slice(1);
      for (const command of commands) {
        const isScript = /\r\n(?:EVALSHA|EVAL)\r\n/.test(command);
        socket.write(isScript ? reply : /\r\nINFO\r\n/.test(command) ? bulk("redis_mode:standalone\r\n") : "+OK\r\n");
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `redis://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const bulk = (text: string): string => `$${text.length}\r\n${text}\r\n`;

it.each([
  ["a text", "+OK\r\n"],
  ["a longer text", bulk("many")],
  ["nothing", "$-1\r\n"],
  ["an empty list", "*0\r\n"],
  ["a list of texts", `*3\r\n${bulk("0").repeat(3)}`],
  ["a list within lists", "*1\r\n*1\r\n:1\r\n"],
])("Redis that answers %s decides nothing, and counts no replicas", async (_, reply) => {
  const rates = await openRedisRates({
    url: await startLying(reply),
    clock: systemClock,
    burstMs: 60_000,
    commandMs: 20_000,
  });
  onTestFinished(() => rates.close());
  const key = subjectOf("key:1", { requestsPerMinute: 10, tokensPerMinute: 10, concurrentRequests: 10 });
  await expect(rates.take(demandOf([key]))).rejects.toThrow(RateStoreError);
  await expect(rates.renew({ replica: "one", held: [] })).rejects.toThrow(RateStoreError);
});
