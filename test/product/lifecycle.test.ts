import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, describe, expect, it } from "vitest";
import {
  FREE_PORTS,
  MAIN,
  makeHome,
  type Product,
  type ProductOptions,
  runProduct,
  startProduct,
} from "../support/product.ts";
import { DONE, TEXT_STREAMS } from "./support/text-streams.ts";
import {
  answerJson,
  answerText,
  beginStream,
  END_EVENTS,
  localModel,
  startUpstream,
  textEvent,
  type Upstream,
  type UpstreamExchange,
} from "./support/upstream.ts";
import { postChat } from "../support/post-json.ts";
import { createKey } from "../support/cli.ts";

const undo: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const step of undo.splice(0).toReversed()) await step();
});

async function openProduct(options: ProductOptions = {}): Promise<Product> {
  const product = await startProduct(options);
  undo.push(() => product.stop());
  return product;
}

async function openUpstream(answer: (exchange: UpstreamExchange) => void): Promise<Upstream> {
  const upstream = await startUpstream(answer);
  undo.push(() => upstream.close());
  return upstream;
}

/** A home that outlives its products, and ends with the test. */
function openHome(): string {
  const home = makeHome();
  undo.push(() => rmSync(home, { recursive: true, force: true }));
  return home;
}

const FAST = { simulator: { enabled: true, tokens_per_second: 1_000_000, first_token_ms: 0 } };

function complete({ url }: Product, key: string, model = "local/test"): Promise<Response> {
  return postChat(url, key, { model });
}

async function statusOf(call: Promise<Response>): Promise<number> {
  const response = await call;
  await response.body?.cancel();
  return response.status;
}

const modelStatus = (product: Product, id: string): Promise<number> =>
  statusOf(fetch(`${product.url}/v1/models/${id}`, { headers: { authorization: `Bearer ${product.firstKey}` } }));

/** Whether something listens there. */
async function listens(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

describe("the first start", () => {
  it("at a terminal prints a key and a working command line, which hides the key from other processes", async () => {
    const home = openHome();
    const config = { ...FAST, ...FREE_PORTS, data_dir: join(home, "data") };
    writeFileSync(join(home, "parley.yaml"), JSON.stringify(config));
    const terminal = spawn("script", ["-qec", `exec ${process.execPath} ${MAIN} serve`, "/dev/null"], {
      cwd: home,
      env: { PATH: process.env["PATH"] },
      stdio: ["pipe", "pipe", "inherit"],
    });
    undo.push(() => void terminal.kill("SIGKILL"));
    const ended = once(terminal, "close");
    let printed = "";
    terminal.stdout.setEncoding("utf8").on("data", (text: string) => (printed += text.replaceAll("\r", "")));
    await expect.poll(() => printed, { timeout: 20_000 }).toContain("| curl ");
    const [, key = ""] = /^export KEY=(sk_parley_[0-9A-Za-z]{46})$/m.exec(printed) ?? [];
    const line = printed.split("\n").find((candidate) => candidate.includes("| curl "))!;
    expect(line).not.toContain(key);
    // A curl of our own, which says what it was started with.
    const tools = join(home, "tools");
    mkdirSync(tools);
    writeFileSync(join(tools, "curl"), '#!/bin/sh\necho "$@" > "$0.arguments"\nPATH=${PATH#*:} exec curl "$@"\n', {
      mode: 0o755,
    });
    const pasted = `export KEY=${key}\n${line} --silent --show-error --max-time 10`;
    const env = { PATH: `${tools}:${process.env["PATH"]}` };
    const { stdout } = await promisify(execFile)("sh", ["-c", pasted], { env });
    expect(JSON.parse(stdout)).toMatchObject({ object: "chat.completion", model: "alpha-haiku-4.5" });
    const shown = readFileSync(join(tools, "curl.arguments"), "utf8");
    expect(shown).toContain("/v1/chat/completions");
    expect(shown).not.toContain("sk_parley_");
    // What Ctrl-C sends.
    terminal.stdin.write("\u0003");
    expect(await ended).toEqual([0, null]);

    const second = await openProduct({ home, config: FAST });
    expect(second.firstKey).toBe("");
    expect(await statusOf(complete(second, key, "alpha-haiku-4.5"))).toBe(200);
  });

  it("without a terminal creates no key, and prints the command for it", async () => {
    const home = openHome();
    const running = runProduct(["serve"], {
      home,
      env: {
        PARLEY_HTTP_LISTEN: "127.0.0.1:0",
        PARLEY_GRPC_LISTEN: "127.0.0.1:0",
        PARLEY_OPERATIONS_LISTEN: "127.0.0.1:0",
      },
    });
    await expect.poll(() => running.output.stdout, { timeout: 20_000 }).toContain("npx parley keys create");
    expect(running.output.stdout + running.output.stderr).not.toContain("sk_parley_");
    const listed = runProduct(["keys", "list", "--json"], { home });
    await listed.ending;
    expect(JSON.parse(listed.output.stdout)).toEqual([]);
    running.child.kill("SIGTERM");
    expect(await running.ending).toEqual({ code: 0, signal: null });
  });

  it("reports which address is in use, and leaves no process running", async () => {
    const home = openHome();
    const ports: Record<string, number> = {};
    for (const server of ["http", "grpc", "operations"]) {
      const holder = createServer();
      await once(holder.listen(0, "127.0.0.1"), "listening");
      undo.push(() => void holder.close());
      ports[server] = (holder.address() as AddressInfo).port;
    }
    const free = "127.0.0.1:0";
    const env = { PARLEY_HTTP_LISTEN: free, PARLEY_GRPC_LISTEN: free, PARLEY_OPERATIONS_LISTEN: free };
    const takes = async (...servers: readonly string[]): Promise<void> => {
      const taken = servers.map((server) => [`PARLEY_${server.toUpperCase()}_LISTEN`, `127.0.0.1:${ports[server]}`]);
      const { ending, output } = runProduct(["serve"], { home, env: { ...env, ...Object.fromEntries(taken) } });
      expect(await ending).toEqual({ code: 1, signal: null });
      expect(output.stdout).toBe("");
      for (const server of servers) {
        const variable = `PARLEY_${server.toUpperCase()}_LISTEN`;
        const advice = `choose another address there, or in ${variable}`;
        expect(output.stderr).toContain(
          `${server}.listen: another program listens on 127.0.0.1:${ports[server]}; ${advice}\n`,
        );
      }
      expect(output.stderr).not.toMatch(/^ +at /m);
    };
    await takes("http");
    await takes("http", "grpc", "operations");
  });
});

describe("keys created while the server runs", () => {
  it("work at once, and are refused within five seconds of being revoked", async () => {
    const product = await openProduct({ config: FAST });
    const { id, key } = await createKey(product);
    expect(await statusOf(complete(product, key, "beta-3-flash"))).toBe(200);

    const revoked = runProduct(["keys", "revoke", id], product);
    expect(await revoked.ending).toMatchObject({ code: 0 });
    await expect
      .poll(() => statusOf(complete(product, key, "beta-3-flash")), { timeout: 5_000, interval: 100 })
      .toBe(401);
    expect(await statusOf(complete(product, product.firstKey, "beta-3-flash"))).toBe(200);
  });
});

describe("SIGHUP", () => {
  it("applies a changed file, and keeps the old configuration when the new one is invalid, with reason and place", async () => {
    const upstream = await openUpstream((exchange) => answerText(exchange, "hi"));
    const config = localModel(upstream.url);
    const product = await openProduct({ config });
    expect(await modelStatus(product, "local/second")).toBe(404);

    const first = (config.models as Record<string, object>)["local/test"];
    product.writeConfig({ ...config, models: { ...config.models, "local/second": first } });
    product.signal("SIGHUP");
    await expect.poll(() => modelStatus(product, "local/second")).toBe(200);
    expect(await statusOf(complete(product, product.firstKey, "local/second"))).toBe(200);

    product.writeConfig('http: { listen: "127.0.0.1:0" }\nproviders:\n  local: { dialekt: openai }\n');
    product.signal("SIGHUP");
    await expect.poll(() => product.output.stderr).toContain("the old one stays");
    const line = product.output.stderr.split("\n").find((text) => text.includes("the old one stays"));
    const { reason } = JSON.parse(line ?? "") as { reason: string };
    expect(reason).toContain("parley.yaml:3:12:");
    expect(reason).toContain("dialekt");
    expect(await modelStatus(product, "local/second")).toBe(200);
  });
});

/** A product with one stream of each entrance in flight: each has said "Once", and waits for its upstream. */
async function withStreams(): Promise<{ product: Product; upstream: Upstream; streams: AsyncGenerator<string>[] }> {
  const upstream = await openUpstream(({ response }) => {
    beginStream(response);
    response.write(textEvent("Once"));
  });
  const product = await openProduct({ config: localModel(upstream.url) });
  const gone = new AbortController();
  undo.push(() => gone.abort());
  const streams = TEXT_STREAMS.map(([, open]) => open(product, gone.signal));
  for (const stream of streams) expect(await stream.next()).toEqual({ done: false, value: "Once" });
  return { product, upstream, streams };
}

describe("SIGTERM", () => {
  it("finishes streams in flight, refuses new connections, and exits with 0", async () => {
    const { product, upstream, streams } = await withStreams();
    product.signal("SIGTERM");
    await expect.poll(() => statusOf(fetch(`${product.operationsUrl}/readyz`))).toBe(503);
    await expect.poll(() => listens(product.httpPort)).toBe(false);
    await expect.poll(() => listens(product.grpcPort)).toBe(false);

    for (const { response } of upstream.exchanges) response.end(textEvent(" upon") + END_EVENTS);
    for (const stream of streams) expect(await Array.fromAsync(stream)).toEqual([" upon", DONE]);
    expect(await product.ending).toEqual({ code: 0, signal: null });
  });

  it("ends streams with an error when it comes a second time, and exits with 0", async () => {
    const { product, upstream, streams } = await withStreams();
    product.signal("SIGTERM");
    await expect.poll(() => product.output.stderr).toContain("draining");
    product.signal("SIGTERM");
    const endings = await Promise.allSettled(streams.map((stream) => Array.fromAsync(stream)));
    const shuttingDown = { status: "rejected", reason: { message: expect.stringContaining("shutting down") } };
    expect(endings).toMatchObject([shuttingDown, shuttingDown, shuttingDown]);
    expect(await product.ending).toEqual({ code: 0, signal: null });
    await expect.poll(() => upstream.exchanges.every((exchange) => exchange.closed)).toBe(true);
  });
});

describe("SIGKILL", () => {
  it("loses no key: existing keys work after the next start", async () => {
    const home = openHome();
    const first = await openProduct({ home, config: FAST });
    expect(await statusOf(complete(first, first.firstKey, "beta-3-flash"))).toBe(200);
    first.signal("SIGKILL");
    expect(await first.ending).toEqual({ code: null, signal: "SIGKILL" });

    const second = await openProduct({ home, config: FAST });
    expect(await statusOf(complete(second, first.firstKey, "beta-3-flash"))).toBe(200);
  });
});

describe("metrics and logs", () => {
  it("counts completions, refusals and tokens on the operations port", async () => {
    const upstream = await openUpstream((exchange) => answerText(exchange, "hi"));
    const product = await openProduct({ config: localModel(upstream.url) });
    expect(await statusOf(complete(product, product.firstKey))).toBe(200);
    expect(await statusOf(complete(product, "sk_parley_wrong"))).toBe(401);
    const metrics = await (await fetch(`${product.operationsUrl}/metrics`)).text();
    expect(metrics).toContain(
      'parley_completions_total{entrance="http",model="local/test",outcome="served",streamed="false"} 1',
    );
    expect(metrics).toContain('parley_refusals_total{entrance="http",code="unauthenticated"} 1');
    expect(metrics).toContain('parley_attempts_total{target="local/test",provider="local",outcome="served"} 1');
    expect(metrics).toContain(
      'parley_tokens_total{model="local/test",target="local/test",provider="local",kind="prompt"} 3',
    );
    expect(metrics).toMatch(/^parley_active_calls 0$/m);
    expect(metrics).toMatch(/^parley_store_seconds_count\{store="sqlite",operation="ledger_begin"\} 1$/m);
    expect(metrics).toMatch(/^parley_store_seconds_count\{store="sqlite",operation="ledger_write"\} 1$/m);
    expect(metrics).toMatch(/^parley_store_seconds_count\{store="sqlite",operation="key_lookup"\} \d$/m);
    expect(metrics).not.toMatch(/parley_(key|tag)_.*total/);
    expect(await (await fetch(`${product.operationsUrl}/readyz`)).json()).toMatchObject({ ready: true });
    expect(await statusOf(fetch(`${product.operationsUrl}/healthz`))).toBe(200);
  });

  it("never contain a secret or a word of a conversation, at log level trace and with every failure", async () => {
    const credential = "canary-provider-credential";
    const upstream = await openUpstream(({ body, response }) => {
      // Providers are known to repeat the credential that they refuse.
      const error = { message: `Incorrect API key provided: ${credential}. You said: ${body}`, type: "x" };
      answerJson(response, 401, { error });
    });
    const { providers, models } = localModel(upstream.url) as { providers: { local: object }; models: object };
    const local = { ...providers.local, api_keys: [credential], headers: { "x-extra": "canary-header" } };
    const product = await openProduct({ config: { providers: { local }, models, log: { level: "trace" } } });
    const { firstKey } = product;
    const wrongKey = `${firstKey.slice(0, -1)}${firstKey.endsWith("A") ? "B" : "A"}`;

    const answer = await complete(product, firstKey);
    expect(answer.status).toBe(500);
    expect(await answer.text()).not.toContain("canary");
    expect(await statusOf(complete(product, wrongKey))).toBe(401);
    expect(await statusOf(complete(product, "canary-not-a-key"))).toBe(401);
    expect(await statusOf(fetch(`${product.url}/nowhere?key=${firstKey}`))).toBe(404);
    product.signal("SIGTERM");
    await product.ending;

    expect(upstream.exchanges[0]?.request.headers.authorization).toBe(`Bearer ${credential}`);
    const { stdout, stderr } = product.output;
    // Nobody is at a terminal.
    expect(stdout).not.toContain("sk_parley_");
    expect(stdout).not.toContain("canary");
    for (const secret of [firstKey, wrongKey, "canary", '"content":"hi"']) expect(stderr).not.toContain(secret);
    expect(stderr).toContain('"outcome":"upstream_refused_us"');
    expect(stderr).toContain('"outcome":"unauthenticated"');
  });
});
