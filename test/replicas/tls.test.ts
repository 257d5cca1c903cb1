import { execFile } from "node:child_process";
import { chmodSync, chownSync } from "node:fs";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { openRedisRates } from "../../src/limits/redis.ts";
import type { RateStore } from "../../src/limits/rates.ts";
import { type TlsFiles, WatchedTlsFiles } from "../../src/net/tls-files.ts";
import { openStore } from "../../src/store/store.ts";
import { demandOf, subjectOf } from "../limits/demands.ts";
import { answerText, localModel, startUpstream } from "../product/support/upstream.ts";
import { CertificateAuthority, LOCAL_NAMES, makeCertificateFolder } from "../support/certificates.ts";
import { findFreePort } from "../support/free-port.ts";
import { startTestFront, type TestFront } from "../support/front.ts";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { createDatabase, type PostgresServer, startPostgres } from "../support/postgres.ts";
import { launchRedis, type RedisServer } from "../support/redis.ts";

const authority = new CertificateAuthority();
const foreign = new CertificateAuthority("foreign");
const folder = makeCertificateFolder();
afterAll(() => folder.remove());

const server = folder.writePair("server", authority.issue({ names: LOCAL_NAMES }));
const client = authority.issue({ names: ["DNS:parley.example.org"] });
const own = folder.writePair("client", client);
const others = folder.writePair("foreign", foreign.issue());
const ca = folder.write("ca.pem", authority.cert);
const foreignCa = folder.write("foreign-ca.pem", foreign.cert);

describe("PostgreSQL with TLS", () => {
  let postgres: PostgresServer;
  let url: URL;
  beforeAll(async () => {
    // Databases of the tests need a client's certificate; the administrative one is for the tests themselves.
    const hba = folder.write(
      "pg_hba.conf",
      ["host postgres all all password", "hostssl all all all password clientcert=verify-ca", ""].join("\n"),
    );
    const local = folder.writePair("postgres", authority.issue({ names: ["DNS:localhost"] }));
    await readableForPostgres([local.cert_file, local.key_file, ca, hba]);
    postgres = await startPostgres({
      settings: {
        ssl: "on",
        ssl_cert_file: local.cert_file,
        ssl_key_file: local.key_file,
        ssl_ca_file: ca,
        hba_file: hba,
      },
    });
    url = new URL(await createDatabase(postgres.url));
  });
  afterAll(() => postgres.stop());

  /** Opens the store; returns "open", or the message for the operator. */
  async function open(parameters: Record<string, string>, hostname = "localhost"): Promise<string> {
    const address = new URL(url);
    address.hostname = hostname;
    for (const [name, value] of Object.entries(parameters)) address.searchParams.set(name, value);
    try {
      const store = await openStore({ dataDir: folder.path("data"), databaseUrl: address.toString() });
      await store.close();
      return "open";
    } catch (error) {
      return (error as Error).message;
    }
  }

  const verified = { sslmode: "verify-full", sslrootcert: ca };
  const shown = { sslcert: own.cert_file, sslkey: own.key_file };

  it("is verified with its authority, and shown our certificate", async () => {
    expect(await open({ ...verified, ...shown })).toBe("open");
  });

  it.each<[string, Record<string, string>, RegExp]>([
    ["another authority", { ...verified, ...shown, sslrootcert: foreignCa }, /trusted authority; .*sslrootcert=FILE/],
    ["no authority", { ...shown, sslmode: "verify-full" }, /trusted authority; .*sslrootcert=FILE/],
    ["a file that does not exist", { ...verified, sslrootcert: "/nowhere.pem" }, /does not exist/],
    ["no certificate of ours", verified, /refuses this user or host; check its pg_hba\.conf/],
    [
      "a certificate of another authority",
      { ...verified, sslcert: others.cert_file, sslkey: others.key_file },
      /^PostgreSQL at localhost/,
    ],
    ["no TLS", {}, /refuses this user or host/],
  ])("is refused with %s, and the operator reads why", async (_, parameters, message) => {
    expect(await open(parameters)).toMatch(message);
  });

  it("is refused under another name than that of its certificate", async () => {
    expect(await open({ ...verified, ...shown }, "127.0.0.1")).toMatch(/is for another name/);
  });
});

/** PostgreSQL reads its files as a user of its own when the tests run as root, and refuses a key that others may read. */
async function readableForPostgres(files: readonly string[]): Promise<void> {
  chmodSync(folder.path(""), 0o755);
  if (process.getuid?.() !== 0) return;
  const { stdout } = await promisify(execFile)("id", ["-u", "postgres"]);
  for (const file of files) chownSync(file, Number(stdout), 0);
}

describe("Redis with TLS", () => {
  let redis: RedisServer;
  let port: number;
  beforeAll(async () => {
    port = await findFreePort();
    const tls = ["--tls-cert-file", server.cert_file, "--tls-key-file", server.key_file, "--tls-ca-cert-file", ca];
    redis = await launchRedis(["--tls-port", String(port), ...tls]);
  });
  afterAll(() => redis.stop());

  const subject = subjectOf("key:1", { requestsPerMinute: 1000, tokensPerMinute: 100_000, concurrentRequests: 1000 });

  async function connect(files: TlsFiles, host = "localhost"): Promise<RateStore> {
    const tls = await WatchedTlsFiles.open(files, {
      everyMs: 20,
      loaded: () => undefined,
      refused: () => undefined,
      expired: () => undefined,
    });
    const rates = await openRedisRates({
      url: `rediss://${host}:${port}`,
      tls,
      clock: systemClock,
      burstMs: 60_000,
      commandMs: 20_000,
    });
    onTestFinished(() => rates.close());
    return rates;
  }

  /** Takes from the rates; returns "taken", or the reason. */
  const take = (rates: RateStore): Promise<string> =>
    rates.take(demandOf([subject])).then(
      () => "taken",
      (error: Error) => error.message,
    );
  const pair = { certFile: own.cert_file, keyFile: own.key_file };

  it.each(["localhost", "127.0.0.1"])(
    "is verified as %s with its authority, and shown our certificate",
    async (host) => {
      expect(await take(await connect({ caFile: ca, ...pair }, host))).toBe("taken");
    },
  );

  it.each<[string, TlsFiles, RegExp]>([
    ["another authority", { caFile: foreignCa, ...pair }, /not connected \((SELF_SIGNED|UNABLE)\w+\)/],
    ["no authority", pair, /not connected \((SELF_SIGNED|UNABLE)\w+\)/],
    [
      "a certificate that it does not accept",
      { caFile: ca, certFile: others.cert_file, keyFile: others.key_file },
      /not connected/,
    ],
    ["no certificate", { caFile: ca }, /not connected/],
  ])("is not used with %s", async (_, files, reason) => {
    expect(await take(await connect(files))).toMatch(reason);
  });

  it("is connected to with changed files, without a command that fails", async () => {
    const changing = folder.writePair("changing", client);
    const rates = await connect({ caFile: ca, certFile: changing.cert_file, keyFile: changing.key_file });
    const clients = async () => (await redis.ask(["CLIENT", "LIST"])).filter((line) => !line.includes("cmd=client"));
    const before = (await clients()).map((line) => /id=\d+/.exec(line)![0]);
    const over = new AbortController();
    const load = (async () => {
      while (!over.signal.aborted) expect(await take(rates)).toBe("taken");
    })();
    folder.writePair("changing", authority.issue());
    const isReplaced = async () => (await clients()).some((line) => !before.some((id) => line.startsWith(`${id} `)));
    await expect.poll(isReplaced, { timeout: 10_000 }).toBe(true);
    await expect.poll(async () => (await clients()).length, { timeout: 10_000 }).toBe(before.length);
    over.abort();
    await load;
  });
});

describe("a front and its core with TLS", () => {
  let gateway: TestGateway;
  let stop: () => Promise<void>;
  beforeAll(async () => {
    const upstream = await startUpstream((exchange) => answerText(exchange, "hi"));
    const tls = { ...server, client_ca_file: ca };
    const limits = { requests_per_minute: "unlimited", tokens_per_minute: "unlimited" };
    gateway = await startTestGateway({
      config: { ...localModel(upstream.url), limits, grpc: { listen: "127.0.0.1:0", tls } },
    });
    stop = async () => {
      await gateway.close();
      await upstream.close();
    };
  });
  afterAll(() => stop());

  const fronts: TestFront[] = [];
  afterEach(async () => {
    for (const front of fronts.splice(0)) await front.close();
  });

  async function startFront(tls: object): Promise<TestFront> {
    const front = await startTestFront(`localhost:${gateway.grpcPort}`, { core: { tls } });
    fronts.push(front);
    return front;
  }

  async function complete({ httpPort }: TestFront): Promise<number> {
    const headers = { authorization: `Bearer ${gateway.key}`, "content-type": "application/json" };
    const body = JSON.stringify({ model: "local/test", messages: [{ role: "user", content: "hi" }] });
    const response = await fetch(`http://127.0.0.1:${httpPort}/v1/chat/completions`, { method: "POST", headers, body });
    await response.arrayBuffer();
    return response.status;
  }

  it("verify each other", async () => {
    expect(await complete(await startFront({ ca_file: ca, ...own }))).toBe(200);
  });

  it("are not connected when one does not accept the other", async () => {
    const bad = [
      { ca_file: ca },
      { ca_file: ca, ...others },
      { ca_file: foreignCa, ...own },
      { ca_file: ca, ...own, server_name: "parley.example" },
    ];
    const asked = bad.map(async (tls) => complete(await startFront(tls)));
    expect(await Promise.all(asked)).toEqual([503, 503, 503, 503]);
  });

  it("replace the front's certificate without a failed call", async () => {
    const pair = folder.writePair("front", client);
    const front = await startFront({ ca_file: ca, ...pair });
    const over = new AbortController();
    const load = [1, 2].map(async () => {
      while (!over.signal.aborted) expect(await complete(front)).toBe(200);
    });
    folder.writePair("front", authority.issue());
    const isLoaded = (): boolean => front.log.filter(({ msg }) => msg === "TLS files loaded").length === 2;
    await expect.poll(isLoaded, { timeout: 20_000 }).toBe(true);
    expect(await complete(front)).toBe(200);
    over.abort();
    await Promise.all(load);
  });
});
