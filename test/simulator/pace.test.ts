import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { Sender } from "../../src/simulator/sender.ts";
import { openSimulator, post } from "./support/simulators.ts";

function askForWords(words: number, stream: boolean) {
  const messages = [{ role: "user", content: `Write ${words} words` }];
  return { dialect: "openai", body: { model: "gpt-5-mini", stream, messages } } as const;
}

describe("the pace of answers", () => {
  it.each([true, false])("delays the first token and each further token (streamed: %s)", async (isStreamed) => {
    const simulator = await openSimulator({ tokensPerSecond: 100, firstTokenMs: 50 });
    const startedMs = performance.now();
    const body = {
      model: "gpt-5-mini",
      max_tokens: 6,
      stream: isStreamed,
      messages: [{ role: "user", content: "Hi" }],
    };
    await (await post(simulator, { dialect: "openai", body })).text();
    expect(performance.now() - startedMs).toBeGreaterThan(95);
  });

  it.each(["gzip", "wrong-length"])(
    "delays an answer in an unusable encoding as long as its stream: %s",
    async (fault) => {
      const simulator = await openSimulator({ tokensPerSecond: 100, firstTokenMs: 50 });
      const startedMs = performance.now();
      const body = { model: "gpt-5-mini", max_tokens: 6, stream: true, messages: [{ role: "user", content: "Hi" }] };
      const response = await post(simulator, { dialect: "openai", body, headers: { "x-simulator-fault": fault } });
      expect(performance.now() - startedMs).toBeGreaterThan(95);
      await response.body?.cancel();
    },
  );

  it("sends headers before the first token is due", async () => {
    const simulator = await openSimulator({ firstTokenMs: 600_000 });
    const response = await post(simulator, askForWords(10, true));
    expect(response.headers.get("content-type")).toContain("text/event-stream");
    await response.body?.cancel();
  });

  it("stops immediately when the client of a stream disconnects", async () => {
    const simulator = await openSimulator({ tokensPerSecond: 0.01 });
    const response = await post(simulator, askForWords(1000, true));
    const reader = response.body?.getReader();
    await reader?.read();
    expect(simulator.requests).toMatchObject({ seen: 1, active: 1 });
    await reader?.cancel();
    await expect.poll(() => simulator.requests).toMatchObject({ active: 0, left: 1 });
    expect(simulator.requests.recent[0]?.outcome).toBe("left");
  });

  it("aborts paced answers when the simulator is closed", async () => {
    const simulator = await openSimulator({ tokensPerSecond: 0.01 });
    const response = await post(simulator, askForWords(1000, true));
    await simulator.close();
    await expect(response.text()).rejects.toThrow("terminated");
    await expect.poll(() => simulator.requests.active).toBe(0);
  });

  it("applies back-pressure to a slow client, and stops when it disconnects", async () => {
    const progress = { writtenMb: 0, outcome: "writing" };
    const megabyte = Buffer.alloc(1024 * 1024, "x");
    const write = async (response: ServerResponse): Promise<void> => {
      const departure = new AbortController();
      response.once("close", () => departure.abort());
      const sender = new Sender(response, departure.signal);
      sender.start(200, {});
      for (; progress.writtenMb < 200; progress.writtenMb += 1) await sender.write(megabyte);
    };
    const server = createServer((_, response) => {
      write(response).then(
        () => (progress.outcome = "written"),
        () => (progress.outcome = "stopped"),
      );
    }).listen(0, "127.0.0.1");
    onTestFinished(() => void server.close());
    await once(server, "listening");

    const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
    socket.pause();
    socket.write("GET / HTTP/1.1\r\nhost: reader\r\n\r\n");
    let seenMb = -1;
    const isStalled = (): boolean => {
      const isSame = progress.writtenMb > 0 && progress.writtenMb === seenMb;
      seenMb = progress.writtenMb;
      return isSame;
    };
    await expect.poll(isStalled, { interval: 150 }).toBe(true);
    expect(progress).toMatchObject({ outcome: "writing" });
    expect(progress.writtenMb).toBeLessThan(64);
    socket.destroy();
    await expect.poll(() => progress.outcome).toBe("stopped");
  });
});
