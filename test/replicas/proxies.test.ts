import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient, type Transport } from "@connectrpc/connect";
import { createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { CompletionService } from "../../gen/parley/v1/completion_pb.js";
import { Role } from "../../gen/parley/v1/message_pb.js";
import { findFreePort } from "../support/free-port.ts";
import { type Product, startProduct } from "../support/product.ts";
import { useProgram } from "./support/programs.ts";

const page = readFileSync(join(import.meta.dirname, "../../docs/operations/proxies.md"), "utf8");
const envoy = useProgram("envoy");

const MODEL = "alpha-sonnet-4.5";
/** The simulator writes for about this time, so that a buffered stream is seen to come at once. */
const STREAM_MS = 1_500;
const SPREAD_MS = 500;

const simulator = { enabled: true, tokens_per_second: 40, first_token_ms: 50 };
const products: Record<Proxy["parley"], Product | undefined> = { "two ports": undefined, "one port": undefined };
beforeAll(async () => {
  products["two ports"] = await startProduct({ config: { simulator } });
  products["one port"] = await startProduct({ config: { simulator, http: { listen: "127.0.0.1:0", grpc: true } } });
});
afterAll(async () => {
  for (const product of Object.values(products)) await product?.stop();
});

interface Proxy {
  readonly language: string;
  readonly ports: "one port" | "two ports";
  /** Ports of Parley. */
  readonly parley: "one port" | "two ports";
  readonly command: (file: string, home: string) => readonly [program: string, ...args: string[]];
  readonly wrap?: (config: string, home: string) => string;
  /** Entry of a replica, and what separates it from the next one. */
  readonly replica: RegExp;
  readonly separator: string;
}

const haproxy: Pick<Proxy, "language" | "command" | "replica" | "separator"> = {
  language: "haproxy",
  command: (file) => ["haproxy", "-db", "-f", file],
  replica: /^ *server a .*$/gm,
  separator: "\n",
};

const PROXIES: Readonly<Record<string, Proxy>> = {
  nginx: {
    language: "nginx",
    ports: "two ports",
    parley: "two ports",
    command: (file, home) => ["nginx", "-p", home, "-c", file],
    wrap: (given, home) => {
      // Of a single server nginx counts no failures.
      const config = given.replaceAll(/^ *server 127.*$/gm, (line) => `${line}\n${line}`);
      const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
      const temporary = paths.map((name) => `${name}_temp_path ${home}/${name};`).join(" ");
      return `daemon off; master_process off; pid ${home}/pid; error_log ${home}/error.log; events {}
http { access_log off; ${temporary}
${config} }`;
    },
    replica: /^ *server 10.*$/gm,
    separator: "\n",
  },
  Caddy: {
    language: "caddyfile",
    ports: "one port",
    parley: "two ports",
    command: (file) => ["caddy", "run", "--config", file, "--adapter", "caddyfile"],
    wrap: (config) => config.replace("{", "{\n  admin off"),
    replica: /\S*10\.0\.0\.1\S*/g,
    separator: " ",
  },
  HAProxy: { ...haproxy, ports: "two ports", parley: "two ports" },
  "One port": { ...haproxy, ports: "one port", parley: "one port" },
  Envoy: {
    language: "yaml",
    ports: "one port",
    parley: "two ports",
    command: (file) => [envoy(), "--config-path", file, "--use-dynamic-base-id", "--concurrency", "1", "-l", "error"],
    replica: /\{ endpoint: .* \}(?=\] \}\])/g,
    separator: ", ",
  },
};

/** Starts the proxy with the text of the page, with the addresses of this test. `stopped`: ports of a replica that is stopped. */
async function start(
  name: string,
  product: Product,
  stopped?: readonly [http: number, grpc: number],
): Promise<{ readonly http: string; readonly grpc: string }> {
  const { language, ports, command, wrap = (config: string) => config, replica, separator } = PROXIES[name]!;
  const section = page.slice(page.indexOf(`\n## ${name}\n`));
  const text = new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``).exec(section)![1]!;
  const [http, second] = [await findFreePort(), await findFreePort()];
  const withPorts = (part: string, [httpPort, grpcPort]: readonly [http: number, grpc: number]): string =>
    part.replaceAll(/\b(?:8080|50051)\b/g, (port) => String(port === "8080" ? httpPort : grpcPort));
  const own = [product.httpPort, product.grpcPort] as const;
  const config = text
    .replaceAll(replica, (entry) =>
      [...(stopped ? [withPorts(entry.replace(" a ", " b "), stopped)] : []), withPorts(entry, own)].join(separator),
    )
    .replaceAll("10.0.0.1", "127.0.0.1")
    .replaceAll(/\b8000\b/g, String(http))
    .replaceAll(/\b8001\b/g, String(second));
  const home = mkdtempSync(join(tmpdir(), "parley-front-"));
  // Some programs read it as another user.
  chmodSync(home, 0o755);
  const file = join(home, language === "yaml" ? "config.yaml" : "config");
  writeFileSync(file, wrap(config, home));
  const [program, ...args] = command(file, home);
  const child = spawn(program, args, { stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, HOME: home } });
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (data: string) => void (errors += data));
  const ended = once(child, "exit");
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
    rmSync(home, { recursive: true, force: true });
  });
  await vi.waitFor(
    async () => {
      const response = await fetch(`http://127.0.0.1:${http}/readyz`).catch(() => undefined);
      if (response?.status !== 200) throw new Error(`${name} does not serve: ${errors}`);
    },
    { timeout: 20_000, interval: 100 },
  );
  return { http: `http://127.0.0.1:${http}`, grpc: `http://127.0.0.1:${ports === "one port" ? http : second}` };
}

/** Time from the first to the last of these. */
async function spreadOf(
  events: AsyncIterable<unknown>,
): Promise<{ readonly count: number; readonly spreadMs: number }> {
  let [count, firstMs] = [0, 0];
  for await (const _event of events) {
    firstMs ||= performance.now();
    count += 1;
  }
  return { count, spreadMs: performance.now() - firstMs };
}

describe.each(Object.keys(PROXIES))("%s, configured as documented", (name) => {
  it("passes the events of streams one by one, over HTTP, gRPC and gRPC-Web", async () => {
    const product = products[PROXIES[name]!.parley]!;
    const { http, grpc } = await start(name, product);
    const headers = { authorization: `Bearer ${product.firstKey}` };
    const prompt = "word ".repeat((STREAM_MS / 1_000) * 40);
    const response = await fetch(`${http}/v1/chat/completions`, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify({ model: MODEL, stream: true, messages: [{ role: "user", content: prompt }] }),
    });
    expect(response.status).toBe(200);
    const seen = await spreadOf(response.body!);
    const messages = [{ role: Role.USER, parts: [{ kind: { case: "text" as const, value: prompt } }] }];
    const spreadOver = (transport: Transport) =>
      spreadOf(createClient(CompletionService, transport).stream({ model: MODEL, messages }, { headers }));
    const overGrpc = await spreadOver(createGrpcTransport({ baseUrl: grpc }));
    const overGrpcWeb = await spreadOver(createGrpcWebTransport({ baseUrl: http, httpVersion: "1.1" }));
    console.log(name, seen, overGrpc, overGrpcWeb);
    for (const { count, spreadMs } of [seen, overGrpc, overGrpcWeb]) {
      expect(count).toBeGreaterThan(5);
      expect(spreadMs).toBeGreaterThan(SPREAD_MS);
    }
  }, 60_000);
});

it.each(Object.keys(PROXIES))(
  "%s, configured as documented, serves all requests while a replica is stopped",
  async (name) => {
    const product = products[PROXIES[name]!.parley]!;
    const { http, grpc } = await start(name, product, [await findFreePort(), await findFreePort()]);
    const headers = { authorization: `Bearer ${product.firstKey}` };
    const messages = [{ role: Role.USER, parts: [{ kind: { case: "text" as const, value: "hi" } }] }];
    const client = createClient(CompletionService, createGrpcTransport({ baseUrl: grpc }));
    const post = () =>
      fetch(`${http}/v1/chat/completions`, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: JSON.stringify({ model: MODEL, messages: [{ role: "user", content: "hi" }] }),
      });
    const [statuses, created] = await Promise.all([
      Promise.all(Array.from({ length: 8 }, async () => (await post()).status)),
      Promise.all(Array.from({ length: 8 }, () => client.create({ model: MODEL, messages }, { headers }))),
    ]);
    expect(statuses).toEqual(Array(8).fill(200));
    expect(created.map(({ choices }) => choices.length)).toEqual(Array(8).fill(1));
  },
  60_000,
);

it.each(Object.keys(PROXIES))(
  "%s, configured as documented, ends the completion of a caller that has left",
  async (name) => {
    const product = products[PROXIES[name]!.parley]!;
    const { http, grpc } = await start(name, product);
    const headers = { authorization: `Bearer ${product.firstKey}` };
    // An answer of a minute, of which nothing is sent before its end.
    const prompt = `Write ${60 * simulator.tokens_per_second} words.`;
    const messages = [{ role: Role.USER, parts: [{ kind: { case: "text" as const, value: prompt } }] }];
    const client = createClient(CompletionService, createGrpcTransport({ baseUrl: grpc }));
    const ask = [
      (signal: AbortSignal) =>
        fetch(`${http}/v1/chat/completions`, {
          method: "POST",
          headers: { ...headers, "content-type": "application/json" },
          body: JSON.stringify({ model: MODEL, messages: [{ role: "user", content: prompt }] }),
          signal,
        }),
      (signal: AbortSignal) => client.create({ model: MODEL, messages }, { headers, signal }),
    ];
    const active = async () =>
      ((await (await fetch(`${product.operationsUrl}/readyz`)).json()) as { active_calls: number }).active_calls;
    const callers = new AbortController();
    const left = Promise.allSettled(ask.map((call) => call(callers.signal)));
    await expect.poll(active, { timeout: 10_000 }).toBe(2);
    callers.abort();
    await expect.poll(active, { timeout: 10_000 }).toBe(0);
    await left;
  },
  60_000,
);

/** HTTP status of a health check over gRPC with these headers. */
async function statusOfCheck(url: string, headers: Readonly<Record<string, string>>): Promise<number | undefined> {
  const session = connect(url);
  const call = { ":method": "POST", ":path": "/grpc.health.v1.Health/Check", te: "trailers" };
  const stream = session.request({ ...call, "content-type": "application/grpc", ...headers });
  stream.end(Buffer.alloc(5));
  const [answer] = (await once(stream, "response")) as [{ readonly ":status"?: number }];
  session.destroy();
  return answer[":status"];
}

it("nginx, configured as documented, takes no replica for failed because of requests that the replica refuses", async () => {
  const { http, grpc } = await start("nginx", products["two ports"]!);
  const long = Object.fromEntries(["x-one", "x-two", "x-three"].map((name) => [name, "x".repeat(7_000)]));
  const refused = await Promise.all([1, 2, 3, 4].map(() => statusOfCheck(grpc, long)));
  expect(refused).toEqual([502, 502, 502, 502]);
  expect(await statusOfCheck(grpc, {})).toBe(200);
  const post = () =>
    fetch(`${http}/v1/chat/completions`, { method: "POST", headers: long, body: Buffer.alloc(8_000_000) });
  await Promise.all([1, 2, 3, 4].map(() => post().catch(() => undefined)));
  expect((await fetch(`${http}/readyz`)).status).toBe(200);
});
