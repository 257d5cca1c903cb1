import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ConfigError } from "../../src/config/config-error.ts";
import { loadConfig } from "../../src/config/load.ts";
import { parseConfig } from "../../src/config/parse.ts";
import { redactConfig } from "../../src/config/settings.ts";
import { nearest } from "../../src/encoding/nearest.ts";

const SECRET = "a-secret-that-must-not-show";

const GOOD = `
http: { listen: "127.0.0.1:8081", cors_origins: ["https://app.example.com"] }
grpc: { listen: "0.0.0.0:50052", allow_public: true, max_receive_mib: 8 }
operations: { listen: "[::1]:9464" }
data_dir: /var/lib/parley
log: { level: warn }
shutdown: { drain_ms: 1000 }
simulator: { tokens_per_second: 1000, first_token_ms: 0 }
retries: { base_ms: 50, cap_ms: 500 }
breaker: { failures: 3, open_ms: 1000, max_open_ms: 10000 }
timeouts: { connect_ms: 100, first_content_ms: 200, idle_ms: 300, total_ms: 400 }
providers:
  alpha: { dialect: anthropic, base_url: "https://api.example.com", api_keys: ["\${ALPHA_API_KEY}"] }
  local: { dialect: openai, base_url: "http://127.0.0.1:11434/v1", allow_private: true, headers: { x-key: ${SECRET} } }
models:
  small: { provider: local, upstream_model: s, context_window: 8192, max_output_tokens: 1024, price: { input: 0, output: 0 } }
`;

describe("loading", () => {
  let directory: string;
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), "parley-config-"));
    writeFileSync(join(directory, "good.yaml"), GOOD);
    writeFileSync(join(directory, "latin1.yaml"), Buffer.from([0x61, 0x3a, 0x20, 0xe9]));
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  it("reads the given file, else the file of PARLEY_CONFIG", () => {
    const file = join(directory, "good.yaml");
    const named = loadConfig({ file, env: { ALPHA_API_KEY: SECRET } });
    expect(named).toMatchObject({ file, log: { level: "warn" }, grpc: { listen: { host: "0.0.0.0" } } });
    expect(loadConfig({ env: { ALPHA_API_KEY: SECRET, PARLEY_CONFIG: file } })).toEqual(named);
    expect(loadConfig({ env: {} }).file).toBeUndefined();
  });

  it.each([
    ["missing.yaml", "there is no such file"],
    ["", "it is a directory"],
    ["latin1.yaml", "it is not UTF-8 text"],
  ])("reports why %j cannot be read", (name, reason) => {
    expect(() => loadConfig({ file: join(directory, name), env: {} })).toThrow(ConfigError);
    expect(() => loadConfig({ file: join(directory, name), env: {} })).toThrow(reason);
  });

  it("can allow a public address by environment variables", () => {
    const load = (env: Record<string, string>) => loadConfig({ env });
    expect(load({ PARLEY_HTTP_LISTEN: "0.0.0.0:8080", PARLEY_HTTP_ALLOW_PUBLIC: "true" }).http.allowPublic).toBe(true);
    expect(() => load({ PARLEY_HTTP_LISTEN: "0.0.0.0:8080" })).toThrow("PARLEY_HTTP_ALLOW_PUBLIC=true");
    expect(() => load({ PARLEY_HTTP_ALLOW_PUBLIC: "yes" })).toThrow("PARLEY_HTTP_ALLOW_PUBLIC");
  });

  it("refuses an empty PARLEY_CONFIG", () => {
    expect(() => loadConfig({ env: { PARLEY_CONFIG: "" } })).toThrow("PARLEY_CONFIG: it is set but empty");
  });
});

describe("a redacted configuration", () => {
  it("shows everything but secrets", () => {
    const config = parseConfig({ file: "f", text: GOOD, env: { ALPHA_API_KEY: SECRET } });
    const text = JSON.stringify(redactConfig(config));
    expect(JSON.stringify(config)).toContain(SECRET);
    expect(text).not.toContain(SECRET);
    expect(text).toContain("https://api.example.com");
  });
});

describe("any damage to a file", () => {
  /** Returns the flaws of the error for a text; none if the text is valid. */
  const flawsOf = (text: string): string[] => {
    try {
      parseConfig({ file: "parley.yaml", text, env: { ALPHA_API_KEY: SECRET } });
      return [];
    } catch (error) {
      if (!(error instanceof ConfigError)) return [`not a ConfigError: ${String(error)}`];
      const misplaced = error.lines.filter((line) => !/^parley\.yaml:[1-9]\d*:[1-9]\d*: ./.test(line));
      const unsafe = /\n\s+at /.test(error.message) || error.message.includes(SECRET);
      return [...misplaced, ...(error.lines.length === 0 ? ["no problem"] : []), ...(unsafe ? [error.message] : [])];
    }
  };

  it("is accepted as another valid file or refused with a place, never a crash", () => {
    const noise = fc.string({ unit: "binary-ascii", maxLength: 6 });
    const damage = fc.tuple(fc.nat(GOOD.length), fc.nat(12), noise);
    fc.assert(
      fc.property(damage, ([start, length, inserted]) => {
        expect(flawsOf(GOOD.slice(0, start) + inserted + GOOD.slice(start + length))).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });

  it("is reported with a place for a file truncated anywhere", () => {
    for (let length = 1; length < GOOD.length; length += 7) expect(flawsOf(GOOD.slice(0, length))).toEqual([]);
  });

  it.each([
    ["deep nesting", "[".repeat(100_000), /bracket is not closed|nested too deeply/],
    [
      "a chain of aliases",
      `a: &a [1]\n${"bcdefghi"
        .split("")
        .map((name, index) => `${name}: &${name} [${`*${"abcdefghi"[index]},`.repeat(10)}]`)
        .join("\n")}`,
      "nested too deeply",
    ],
    [
      "nesting that the parser can read",
      `simulator: ${'{"a": '.repeat(3000)}1${"}".repeat(3000)}`,
      "nested too deeply",
    ],
    ["an alias inside its own part", "simulator: &a {enabled: true, more: *a}", "nested too deeply"],
    ["a NUL character", "simulator: {} # \0", "contains a NUL character"],
    ["a file of more than 1 MiB", "#".repeat(1024 * 1024 + 1), "larger than 1 MiB"],
  ])("such as %s is refused", (_, text, expected) => {
    expect(() => parseConfig({ file: "parley.yaml", text, env: {} })).toThrow(ConfigError);
    expect(() => parseConfig({ file: "parley.yaml", text, env: {} })).toThrow(expected);
  });

  it.each(["\u007f", "\u009b31m", "\u202e", "\u001b]0;title\u0007"])("does not print %j to a terminal", (control) => {
    const parse = () => parseConfig({ file: "f", text: JSON.stringify({ [`a${control}b`]: 1 }), env: {} });
    expect(parse).toThrow("unknown key");
    expect(parse).not.toThrow(control);
  });

  it("to a key's name is always reported with the nearest key", () => {
    const names = new Set(["https", "http", "alpha", "local", "small", "x"]);
    const keys = [...GOOD.matchAll(/\b([a-z_]{4,}):/g)].map(([, key]) => key ?? "").filter((key) => !names.has(key));
    expect(keys.length).toBeGreaterThan(30);
    for (const key of keys) {
      const text = GOOD.replace(`${key}:`, `${key}x:`);
      const parse = () => parseConfig({ file: "f", text, env: { ALPHA_API_KEY: SECRET } });
      expect(parse).toThrow(`${key}x: unknown key; did you mean ${key}?`);
    }
  });
});

describe("the nearest word", () => {
  it.each([
    ["lisen", ["listen", "level"], "listen"],
    ["LISTEN", ["listen"], "listen"],
    ["entirely", ["listen", "level"], undefined],
    ["ab", ["xy"], undefined],
  ])("to %s of %j is %s", (word, candidates, expected) => expect(nearest(word, candidates)).toBe(expected));
});
