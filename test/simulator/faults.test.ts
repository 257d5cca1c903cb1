import { describe, expect, it, onTestFinished } from "vitest";
import { parseFault } from "../../src/simulator/faults.ts";
import type { Simulator } from "../../src/simulator/server.ts";
import { sendRaw, type RawAnswer, type RawRequest } from "./support/raw-socket.ts";
import { openSimulator, post, toStreamed, type DialectName } from "./support/simulators.ts";

const DIALECTS: readonly DialectName[] = ["anthropic", "gemini", "openai"];

const CONTENT: Readonly<Record<DialectName, RegExp>> = {
  anthropic: /text_delta/gu,
  gemini: /"parts":\[\{"text":"[^"]/gu,
  openai: /"delta":\{"content":"[^"]/gu,
};

const FINISH: Readonly<Record<DialectName, RegExp>> = {
  anthropic: /message_stop|"stop_reason":"/u,
  gemini: /finishReason/u,
  openai: /\[DONE\]|"finish_reason":"/u,
};

function countContent(answer: RawAnswer, dialect: DialectName): number {
  return answer.text.match(CONTENT[dialect])?.length ?? 0;
}

function send(simulator: Simulator, request: RawRequest): RawAnswer {
  const answer = sendRaw(simulator, request);
  onTestFinished(() => answer.close());
  return answer;
}

async function sendToEnd(request: RawRequest): Promise<RawAnswer> {
  const answer = send(await openSimulator(), request);
  await expect.poll(() => answer.end).toBeDefined();
  return answer;
}

describe.each(DIALECTS)("a fault in the %s dialect", (dialect) => {
  it("responds with a status and the dialect's error body", async () => {
    const answer = await sendToEnd({ dialect, delivery: "stream", fault: "status=503; message=Out for lunch" });
    expect(answer.text).toMatch(/^HTTP\/1\.1 503 /u);
    expect(answer.text).toContain("content-type: application/json");
    expect(answer.text).toContain('"message":"Out for lunch"');
  });

  it("never responds when it hangs, and releases the request when the client disconnects", async () => {
    const simulator = await openSimulator();
    const answer = send(simulator, { dialect, delivery: "whole", fault: "hang" });
    await expect.poll(() => simulator.requests.recent[0]?.fault).toBe("hang");
    expect(simulator.requests.active).toBe(1);
    answer.close();
    await expect.poll(() => simulator.requests).toMatchObject({ active: 0, left: 1, connections: 0 });
    expect(answer.text).toBe("");
    expect(simulator.requests.recent[0]).not.toHaveProperty("status");
  });

  it("resets the connection before the first byte", async () => {
    const answer = await sendToEnd({ dialect, delivery: "whole", fault: "reset" });
    expect(answer).toMatchObject({ text: "", end: "reset" });
  });

  it("stalls after the requested number of content events", async () => {
    const answer = send(await openSimulator(), { dialect, delivery: "stream", fault: "hang-after=3" });
    await expect.poll(() => countContent(answer, dialect)).toBe(3);
    expect(answer.text).not.toMatch(FINISH[dialect]);
    expect(answer.end).toBeUndefined();
  });

  it("closes the connection during the stream without the final chunk when it is cut", async () => {
    const answer = await sendToEnd({ dialect, delivery: "stream", fault: "cut-after=2" });
    expect(answer.end).toBe("fin");
    expect(countContent(answer, dialect)).toBe(2);
    expect(answer.text).not.toMatch(/\r\n0\r\n\r\n$/u);
    expect(answer.text).not.toMatch(FINISH[dialect]);
  });

  it("resets the connection during the stream", async () => {
    const answer = await sendToEnd({ dialect, delivery: "stream", fault: "reset-after=2" });
    expect(answer.end).toBe("reset");
    expect(countContent(answer, dialect)).toBeLessThanOrEqual(2);
  });

  it("sends an error as the first event of a stream", async () => {
    const answer = await sendToEnd({ dialect, delivery: "stream", fault: "error-first" });
    const [, firstEvent] = answer.text.split("data: ");
    expect(answer.text).toMatch(/^HTTP\/1\.1 200 /u);
    expect(firstEvent).toMatch(/"error":\{/u);
    expect(countContent(answer, dialect)).toBe(0);
  });

  it("sends an error as the last event after some content", async () => {
    const answer = await sendToEnd({ dialect, delivery: "stream", fault: "error-after=2" });
    expect(countContent(answer, dialect)).toBe(2);
    expect(answer.text).toMatch(/"error":\{/u);
    expect(answer.text).toMatch(/\r\n0\r\n\r\n$/u);
    expect(answer.text).not.toMatch(FINISH[dialect]);
  });

  it("breaks before the finish if there are fewer content events than requested", async () => {
    const answer = await sendToEnd({ dialect, delivery: "stream", fault: "cut-after=100000" });
    expect(countContent(answer, dialect)).toBeGreaterThan(5);
    expect(answer.text).not.toMatch(FINISH[dialect]);
  });

  it("ends properly without a finish reason when it is truncated", async () => {
    const streamed = await sendToEnd({ dialect, delivery: "stream", fault: "truncate" });
    expect(countContent(streamed, dialect)).toBeGreaterThan(5);
    expect(streamed.text).not.toMatch(FINISH[dialect]);
    expect(streamed.text).toMatch(/\r\n0\r\n\r\n$/u);
    const whole = await sendToEnd({ dialect, delivery: "whole", fault: "truncate" });
    expect(whole.text).not.toMatch(FINISH[dialect]);
  });

  it("sends half of a whole answer and closes the connection", async () => {
    const answer = await sendToEnd({ dialect, delivery: "whole", fault: "cut-after=1" });
    const [head = "", body = ""] = answer.text.split("\r\n\r\n");
    const length = Number(/content-length: (\d+)/u.exec(head)?.[1]);
    expect(Buffer.byteLength(body)).toBe(Math.floor(length / 2));
  });

  it("sends an error in place of a whole answer with status 200", async () => {
    const answer = await sendToEnd({ dialect, delivery: "whole", fault: "error-first" });
    expect(answer.text).toMatch(/^HTTP\/1\.1 200 /u);
    expect(JSON.parse(answer.text.split("\r\n\r\n")[1] ?? "")).toHaveProperty("error.message");
  });

  it("sends invalid JSON, HTML or an empty body with status 200", async () => {
    const simulator = await openSimulator();
    const read = async (fault: string): Promise<[number, string | null, string]> => {
      const response = await post(simulator, { dialect, headers: { "x-simulator-fault": fault } });
      return [response.status, response.headers.get("content-type"), await response.text()];
    };
    const [status, type, text] = await read("garbage");
    expect([status, type]).toEqual([200, "application/json; charset=utf-8"]);
    expect(() => JSON.parse(text) as unknown).toThrow(SyntaxError);
    expect(await read("html")).toEqual([200, "text/html; charset=utf-8", expect.stringContaining("<html>")]);
    expect(await read("empty")).toEqual([200, "application/json; charset=utf-8", ""]);
  });

  it("compresses the response although the request does not accept it", async () => {
    const answer = await sendToEnd({ dialect, delivery: "stream", fault: "gzip" });
    expect(answer.text).toContain("content-encoding: gzip");
    expect(answer.text).not.toMatch(FINISH[dialect]);
  });

  it.each(["whole", "stream"] as const)("sends less of a %s answer than its content-length", async (delivery) => {
    const answer = await sendToEnd({ dialect, delivery, fault: "wrong-length" });
    const [head = "", ...rest] = answer.text.split("\r\n\r\n");
    expect(answer.end).toBe("fin");
    expect(answer.text).toMatch(FINISH[dialect]);
    expect(Number(/content-length: (\d+)/u.exec(head)?.[1])).toBe(Buffer.byteLength(rest.join("\r\n\r\n")) + 10);
  });

  it("finishes without content", async () => {
    const answer = await sendToEnd({ dialect, delivery: "stream", fault: "no-content" });
    expect(countContent(answer, dialect)).toBe(0);
    expect(answer.text).toMatch(FINISH[dialect]);
  });

  it("sends the body in many small writes", async () => {
    const answer = await sendToEnd({ dialect, delivery: "whole", fault: "drip=40; every=1" });
    expect(answer.text).toMatch(FINISH[dialect]);
    expect(answer.reads).toBeGreaterThan(5);
  });
});

describe("selecting a fault", () => {
  it("works in the last user message, so that it passes through a gateway", async () => {
    const simulator = await openSimulator();
    const body = { model: "gpt-5-mini", messages: [{ role: "user", content: "[[fault: status=418]] Hello" }] };
    expect((await post(simulator, { dialect: "openai", body })).status).toBe(418);
  });

  it("removes the directive from the quote in the answer", async () => {
    const simulator = await openSimulator();
    const body = { model: "gpt-5-mini", messages: [{ role: "user", content: "[[fault: delay=1]] Hello" }] };
    const text = await (await post(simulator, { dialect: "openai", body })).text();
    expect(text).toContain('You wrote: \\"Hello\\"');
  });

  it("can be limited to one model in the options", async () => {
    const simulator = await openSimulator({ faults: [{ fault: "status=500", model: "gpt-5-mini" }] });
    expect((await post(simulator, { dialect: "openai" })).status).toBe(500);
    expect((await post(simulator, { dialect: "anthropic" })).status).toBe(200);
  });

  it("limits the number of times per fault text", async () => {
    const simulator = await openSimulator();
    const ask = async (fault: string): Promise<number> =>
      (await post(simulator, { dialect: "gemini", headers: { "x-simulator-fault": fault } })).status;
    expect(await ask("status=500; times=1; id=a")).toBe(500);
    expect(await ask("status=500; times=1; id=b")).toBe(500);
    expect(await ask("status=500; times=1; id=a")).toBe(200);
  });

  it("delays the headers", async () => {
    const simulator = await openSimulator();
    const startedMs = performance.now();
    await post(simulator, { dialect: "openai", headers: { "x-simulator-fault": "delay=80" } });
    expect(performance.now() - startedMs).toBeGreaterThan(75);
  });

  it("encodes the retry delay as in each dialect", async () => {
    const simulator = await openSimulator({ faults: [{ fault: "status=429; retry-after=9" }] });
    for (const dialect of ["anthropic", "openai"] as const) {
      expect((await post(simulator, { dialect })).headers.get("retry-after")).toBe("9");
    }
    const response = await post(simulator, { dialect: "gemini" });
    expect(response.headers.has("retry-after")).toBe(false);
    expect(await response.text()).toContain('"retryDelay":"9s"');
  });

  it.each(DIALECTS)("rejects an invalid fault in the %s dialect", async (dialect) => {
    const simulator = await openSimulator();
    const { path, body } = toStreamed(dialect);
    const response = await post(simulator, { dialect, path, body, headers: { "x-simulator-fault": "explode" } });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain("explode");
  });

  it.each(["explode", "status=200", "delay=soon", "hang; reset", "drip=0", "delay=99999999999"])(
    "prevents the start with the invalid fault %s",
    async (fault) => {
      await expect(openSimulator({ faults: [{ fault }] })).rejects.toBeInstanceOf(SyntaxError);
    },
  );

  it("accepts clauses in any order and spacing", () => {
    expect(parseFault(" times=2;status = 429 ;retry-after=3")).toMatchObject({
      failure: { kind: "status", status: 429, detail: { retryAfterSeconds: 3 } },
      times: 2,
    });
    expect(parseFault("drip=1;every=50")).toMatchObject({ failure: undefined, drip: { bytes: 1, everyMs: 50 } });
  });
});
