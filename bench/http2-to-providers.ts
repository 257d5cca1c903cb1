// node bench/http2-to-providers.ts: calls over TLS to one server by HTTP/1.1 and by HTTP/2, in turns. CPU time is the callers'
// process, the server is another; docs/decisions/0055-http2-to-providers.md has the result.
import { fork } from "node:child_process";
import { once } from "node:events";
import { createSecureServer } from "node:http2";
import type { ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { createSecureContext } from "node:tls";
import { connectUpstream, UNLIMITED } from "../src/providers/transport/http.ts";
import { CertificateAuthority, LOCAL_NAMES } from "../test/support/certificates.ts";
import { median } from "./measure/statistics.ts";

const BODY = JSON.stringify({ model: "m", messages: [{ role: "user", content: "x".repeat(600) }] });
const WHOLE = JSON.stringify({ content: "y".repeat(700) });
const EVENT = `data: ${JSON.stringify({ delta: "z".repeat(60) })}\n\n`;
const EVENTS = 200;
const ROUNDS = 8;
/** Calls at once, as in other benchmarks; and with a provider's pauses, in which answers do not come together. */
const LOADS: readonly Load[] = [
  { name: "unary, 64 at once", path: "/whole", concurrency: 64, calls: 4_000 },
  { name: "unary after 10 to 90 ms, 32 at once", path: "/later", concurrency: 32, calls: 800 },
  { name: `streams of ${EVENTS} events, 32 at once`, path: "/stream", concurrency: 32, calls: 160 },
  { name: `streams of ${EVENTS} events, one in 10 ms, 32 at once`, path: "/paced", concurrency: 32, calls: 32 },
];

interface Load {
  readonly name: string;
  readonly path: string;
  readonly concurrency: number;
  readonly calls: number;
}

interface Client {
  /** Sends one request and reads its whole answer. */
  readonly call: (path: string) => Promise<void>;
  readonly close: () => void;
}

if (process.send !== undefined) serve();
else await measure();

/** Answers both protocols on one port, which it sends to the parent with the certificate of its authority. */
function serve(): void {
  const authority = new CertificateAuthority();
  const server = createSecureServer({ ...authority.issue({ names: LOCAL_NAMES }), allowHTTP1: true });
  server.on("request", (request, response) => {
    request.resume();
    request.on("end", () => void answer(request.url ?? "", response as unknown as ServerResponse));
  });
  server.listen(0, "127.0.0.1", () => {
    const address = server.address();
    process.send?.({ port: typeof address === "object" ? address?.port : undefined, ca: authority.cert });
  });
  process.on("disconnect", () => process.exit());
}

async function answer(path: string, response: ServerResponse): Promise<void> {
  response.setHeader("content-type", isStream(path) ? "text/event-stream" : "application/json");
  if (path === "/later") await delay(10 + 80 * Math.random());
  if (!isStream(path)) return void response.end(WHOLE);
  for (let sent = 0; sent < EVENTS; sent++) {
    if (!response.write(EVENT)) await once(response, "drain");
    if (path === "/paced") await delay(5 + 10 * Math.random());
  }
  response.end();
}

function isStream(path: string): boolean {
  return path === "/stream" || path === "/paced";
}

async function measure(): Promise<void> {
  const server = fork(new URL(import.meta.url));
  const [{ port, ca }] = (await once(server, "message")) as [{ port: number; ca: string }];
  const clients = [false, true].map((http2) => () => openClient(`https://127.0.0.1:${port}`, { ca, http2 }));
  for (const load of LOADS) {
    const opened = clients.map((open) => open());
    const costs = opened.map(() => [] as number[]);
    for (let round = -2; round < ROUNDS; round++)
      for (const [index, { call }] of opened.entries()) {
        const us = await cpuUsOf(() => callMany(call, load));
        if (round >= 0) costs[index]!.push(us / load.calls);
      }
    for (const { close } of opened) close();
    print(load.name, costs.map(median), "CPU-µs a call");
  }
  const bursts = clients.map(() => ({ ms: [] as number[], us: [] as number[] }));
  for (let round = -1; round < ROUNDS; round++)
    for (const [index, open] of clients.entries()) {
      const { call, close } = open();
      const before = performance.now();
      const us = await cpuUsOf(() => callMany(call, { path: "/whole", concurrency: 64, calls: 64 }));
      if (round >= 0) bursts[index]!.us.push(us / 64);
      if (round >= 0) bursts[index]!.ms.push(performance.now() - before);
      close();
    }
  print(
    "64 calls at once without open connections",
    bursts.map(({ us }) => median(us)),
    "CPU-µs a call",
  );
  print(
    "the same, until the last answer",
    bursts.map(({ ms }) => median(ms)),
    "ms",
  );
  server.disconnect();
}

function openClient(baseUrl: string, { ca, http2 }: { readonly ca: string; readonly http2: boolean }): Client {
  const upstream = connectUpstream({
    baseUrl,
    allowPrivate: true,
    connectMs: 10_000,
    connections: { ...UNLIMITED, http2 },
    egress: { secureContext: createSecureContext({ ca }) },
  });
  const headers = { "content-type": "application/json", authorization: "Bearer sk-0123456789" };
  const call = async (path: string): Promise<void> => {
    const request = { path, headers, body: BODY, idleMs: 10_000, signal: new AbortController().signal };
    const response = await upstream.post(request, "*/*");
    let bytes = 0;
    for (let read; (read = await response.read()) !== undefined;) for (const buffer of read) bytes += buffer.length;
    expectWhole(path, bytes);
  };
  return { call, close: () => void upstream.close() };
}

function expectWhole(path: string, bytes: number): void {
  const expected = isStream(path) ? EVENTS * EVENT.length : WHOLE.length;
  if (bytes !== expected) throw new Error(`${path} has ${bytes} bytes of ${expected}`);
}

async function callMany(call: Client["call"], load: Omit<Load, "name">): Promise<void> {
  let left = load.calls;
  const caller = async (): Promise<void> => {
    while (left-- > 0) await call(load.path);
  };
  await Promise.all(Array.from({ length: load.concurrency }, caller));
}

/** CPU time of this process, all its threads. */
async function cpuUsOf(work: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

function print(load: string, [http1, http2]: readonly number[], unit: string): void {
  const ratio = (http2! / http1!).toFixed(2);
  console.log(`${load}: HTTP/1.1 ${http1!.toFixed(1)}, HTTP/2 ${http2!.toFixed(1)} ${unit}, ${ratio} ×`);
}
