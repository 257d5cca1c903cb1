import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runCli } from "../../src/cli/cli.ts";
import { loadConfig } from "../../src/config/load.ts";
import { isExposed, listWarnings } from "../../src/config/warnings.ts";

const PAIR = { cert_file: import.meta.filename, key_file: import.meta.filename };
const KEY = "a-long-enough-credential";
const SAFE = "postgres://parley@db.example.com/parley?sslmode=verify-full";

let home: string;
let file: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "parley-warnings-"));
  file = join(home, "parley.yaml");
});
afterEach(() => rmSync(home, { recursive: true }));

/** A configuration from a file with these permissions. */
function load(sections: object, { mode = 0o600, env = {} }: { mode?: number; env?: Record<string, string> } = {}) {
  writeFileSync(file, JSON.stringify({ data_dir: join(home, "data"), ...sections }));
  chmodSync(file, mode);
  return loadConfig({ file, env });
}

const settings = (...given: Parameters<typeof load>) => listWarnings(load(...given)).map(({ setting }) => setting);

describe("an unsafe configuration", () => {
  const open = { listen: "0.0.0.0:8080", allow_public: true };

  it.each([
    [{}, []],
    [{ http: open }, ["http.listen"]],
    [{ http: { ...open, public_url: "http://parley.example.com" } }, ["http.public_url"]],
    [{ http: { ...open, public_url: "https://parley.example.com" } }, []],
    [{ http: { ...open, tls: PAIR } }, []],
    [{ http: { public_url: "http://parley.example.com" } }, ["http.public_url"]],
    [{ http: { public_url: "http://localhost:8080" } }, []],
    [{ http: { ...open, public_url: "http://localhost:8080" } }, ["http.listen"]],
    [{ grpc: { ...open, listen: "0.0.0.0:50051" } }, ["grpc.listen"]],
    [{ http: open, grpc: { ...open, listen: "0.0.0.0:50051" } }, ["http.listen", "grpc.listen"]],
    [{ http: { ...open, tls: PAIR }, grpc: { ...open, listen: "0.0.0.0:50051" } }, ["grpc.listen"]],
    [{ http: { ...open, public_url: "https://parley.example.com" }, grpc: { ...open, listen: "0.0.0.0:50051" } }, []],
    [
      {
        http: { ...open, public_url: "https://parley.example.com", tls: PAIR },
        grpc: { ...open, listen: "0.0.0.0:50051" },
      },
      ["grpc.listen"],
    ],
    [{ grpc: { ...open, listen: "0.0.0.0:50051", tls: PAIR } }, []],
    [{ http: { grpc: true }, grpc: { ...open, listen: "0.0.0.0:50051" } }, []],
    [{ http: { tls: { ...PAIR, key_file: "/nowhere.key" } } }, ["http.tls.key_file"]],
    [{ grpc: { tls: { ...PAIR, client_ca_file: "/nowhere.pem" } } }, ["grpc.tls.client_ca_file"]],
    [{ http: { grpc: true }, grpc: { tls: PAIR } }, ["http.grpc"]],
    [{ http: { grpc: true, tls: PAIR }, grpc: { tls: PAIR } }, ["http.grpc"]],
    [{ http: { grpc: true, tls: PAIR } }, []],
    [{ http: { tls: PAIR }, grpc: { tls: PAIR } }, []],
    [{ database: { url: "postgres://parley@db.example.com/parley" } }, ["database.url"]],
    [{ database: { url: "postgres://parley@db.example.com/parley?sslmode=disable" } }, ["database.url"]],
    [{ database: { url: "postgres://parley@db.example.com/parley?sslmode=no-verify" } }, ["database.url"]],
    [{ database: { url: "postgres://parley@db.example.com/parley?sslmode=verify-full" } }, []],
    [{ database: { url: "postgres://parley@db.example.com/parley?ssl=true" } }, []],
    [{ database: { url: "postgres://parley@db.example.com/parley?ssl=0" } }, ["database.url"]],
    [{ database: { url: "postgres://parley@[::1]/parley" } }, []],
    [{ database: { url: "postgres://parley@localhost,db.example.com/parley" } }, ["database.url"]],
    [{ database: { url: "postgres://parley@a.example.com,b.example.com/parley?sslmode=verify-full" } }, []],
    [{ database: { url: "postgres:///parley?host=/run/postgresql" } }, []],
    [{ database: { url: "postgres:///parley?host=db.example.com" } }, ["database.url"]],
    [{ database: { url: SAFE, read_url: "postgres://parley@db.example.com/parley" } }, ["database.read_url"]],
    [{ database: { url: SAFE, listen_url: "postgres://parley@db.example.com/parley" } }, ["database.listen_url"]],
    [{ database: { url: SAFE, listen_url: "none" } }, []],
    [{ smtp: { host: "mail.example.com", security: "none", from: "parley@example.com" } }, ["smtp.security"]],
    [{ smtp: { host: "mail.example.com", from: "parley@example.com" } }, []],
    [{ smtp: { host: "127.0.0.1", security: "none", from: "parley@example.com" } }, []],
    [{ redis: { url: "redis://cache:6379" } }, ["redis.url"]],
    [{ redis: { url: "rediss://cache:6379" } }, []],
    [{ redis: { url: "redis://127.0.0.1:6379,cache:6379", mode: "cluster" } }, ["redis.url"]],
    [{ redis: { url: "redis://127.0.0.1:6379" } }, []],
  ])("causes a warning for %j", (sections, expected) => {
    expect(settings(sections)).toEqual(expected);
  });

  it("causes a warning when the file holds secrets and every user may read it", () => {
    const provider = (changes: object) => ({
      providers: { local: { dialect: "openai", base_url: "https://api.example.com/v1", ...changes } },
      models: { m: { provider: "local", upstream_model: "m", context_window: 1000, max_output_tokens: 100 } },
    });
    const env = { LOCAL_KEY: KEY };
    const secrets = [
      provider({ api_keys: [KEY] }),
      provider({ api_keys: ["${LOCAL_KEY}"], headers: { "x-tenant-token": "hunterhunter" } }),
      { database: { url: "postgres://parley:hunter@localhost/parley" } },
      { redis: { url: "redis://:hunter@localhost" } },
      { redis: { url: "redis://:hunter@localhost:1,localhost:2", mode: "cluster" } },
      { redis: { url: "redis://localhost", mode: "sentinel", sentinel: { master: "m", password: "hunter" } } },
    ];
    for (const sections of secrets) {
      expect(settings(sections, { mode: 0o644, env })).toEqual([file]);
      expect(settings(sections, { mode: 0o640, env })).toEqual([]);
    }
    for (const sections of [provider({ api_keys: ["${LOCAL_KEY}"], headers: { "x-region": "eu" } }), {}])
      expect(settings(sections, { mode: 0o644, env })).toEqual([]);
    const [warning] = listWarnings(load(secrets[0]!, { mode: 0o644, env }));
    expect(warning?.text).toContain(`chmod o= ${file}`);
    expect(JSON.stringify(warning)).not.toContain(KEY);
  });

  it("causes a warning when other users may enter the data directory", () => {
    const dataDir = join(home, "data");
    mkdirSync(dataDir);
    for (const [mode, expected] of [
      [0o700, []],
      [0o750, ["data_dir"]],
      [0o755, ["data_dir"]],
    ] as const) {
      chmodSync(dataDir, mode);
      expect(settings({})).toEqual(expected);
    }
    expect(listWarnings(load({}))[0]?.text).toContain(`chmod 700 ${dataDir}`);
  });

  it("causes a warning when every user may change the file", () => {
    expect(settings({}, { mode: 0o666 })).toEqual([file]);
    expect(settings({}, { mode: 0o664 })).toEqual([]);
    expect(listWarnings(load({}, { mode: 0o602 }))[0]?.text).toContain(`chmod o-w ${file}`);
  });

  // Only root may give a directory away.
  it.skipIf(process.getuid?.() !== 0)("causes a warning when the data directory belongs to another user", () => {
    const dataDir = join(home, "data");
    mkdirSync(dataDir, { mode: 0o700 });
    expect(settings({})).toEqual([]);
    chownSync(dataDir, 12_345, 0);
    expect(listWarnings(load({}))[0]?.text).toContain(`${dataDir} belongs to another user (12345)`);
  });

  it("is valid: config check reports that on stdout, and warns on stderr", async () => {
    load({ http: open });
    let [stdout, stderr] = ["", ""];
    const code = await runCli(["config", "check", file], {
      env: {},
      stdout: { write: (text) => (stdout += text) },
      stderr: { write: (text) => (stderr += text) },
      serve: () => Promise.resolve(0),
    });
    expect(code).toBe(0);
    expect(stdout).toContain("is valid");
    expect(stderr).toMatch(/^warning: http\.listen: .*http\.public_url.*\n$/);
  });
});

describe("the dashboard", () => {
  it.each([
    [{}, false],
    [{ http: { listen: "[::1]:8080" } }, false],
    [{ http: { allow_public: true } }, true],
    [{ http: { listen: "0.0.0.0:8080", allow_public: true } }, true],
    [{ http: { public_url: "https://parley.example.com" } }, true],
    [{ http: { trusted_proxies: ["10.0.0.0/8"] } }, true],
  ])("with %j is exposed: %s", (sections, expected) => {
    expect(isExposed(load(sections))).toBe(expected);
  });
});
