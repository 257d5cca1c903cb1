import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { captureCli } from "../support/cli.ts";
import type { Config } from "../../src/config/config.ts";
import { readKeyOf } from "../../src/config/encryption-keys.ts";
import { loadConfig, readSource, withKeys } from "../../src/config/load.ts";
import { parseConfig } from "../../src/config/parse.ts";
import { listSettings, redactConfig } from "../../src/config/settings.ts";

const KEY = Buffer.alloc(32, 7).toString("base64");
const HEX_KEY = "a1".repeat(32);

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "parley-keys-"))));
afterEach(() => rmSync(folder, { recursive: true }));

/** Writes a file of the test, and returns its path. */
function write(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

async function load(file: object, env: Readonly<Record<string, string>> = {}): Promise<Config> {
  const path = write("parley.yaml", JSON.stringify(file));
  const source = readSource({ file: path, env: { PATH: process.env["PATH"], ...env } });
  return parseConfig(await withKeys(source));
}

/** The problems of a configuration, one a line. */
const problemsOf = async (file: object): Promise<string> =>
  load(file).then(
    () => "",
    (error: Error) => error.message,
  );

const database = { url: "postgres://127.0.0.1/parley" };

describe("keys of encryption", () => {
  it("are read of files and printed by commands, without a shell, with variables of the environment", async () => {
    const ofFile = write("key", `  ${KEY}\n`);
    const command = ["sh", "-c", 'printf "%s\\n" "$1"', "sh", "${HEX_KEY}"];
    const config = await load(
      {
        database,
        outage: { encryption_key_file: ofFile },
        responses: { store_days: 1, encryption_key_command: command },
        account_credentials: { encryption_key: HEX_KEY, previous_encryption_key_command: ["cat", ofFile] },
        sign_in: { second_factor: "required" },
      },
      { HEX_KEY },
    );
    expect(config.outage.encryptionKey).toBe(KEY);
    expect(config.responses.encryptionKey).toBe(HEX_KEY);
    expect(config.accountCredentials).toEqual({ encryptionKey: HEX_KEY, previousEncryptionKey: KEY });
  });

  it("can be named by variables", async () => {
    const variable = "PARLEY_ACCOUNT_CREDENTIALS_ENCRYPTION_KEY";
    const file = write("key", KEY);
    expect((await load({}, { [`${variable}_FILE`]: file })).accountCredentials).toEqual({ encryptionKey: KEY });
    const command = JSON.stringify(["cat", file]);
    expect((await load({}, { [`${variable}_COMMAND`]: command })).accountCredentials).toEqual({ encryptionKey: KEY });
  });

  it("are shown with where they are read, and without arguments", async () => {
    const config = await load({
      outage: { encryption_key_file: write("key", KEY) },
      responses: { encryption_key_command: ["echo", KEY] },
    });
    const shown = Object.fromEntries(listSettings(config).map(({ key, value }) => [key, value]));
    expect(shown).toMatchObject({
      "outage.encryption_key": "…",
      "outage.encryption_key_file": join(folder, "key"),
      "responses.encryption_key_command": "echo, …",
      "account_credentials.encryption_key_command": "",
    });
    expect(JSON.stringify([shown, redactConfig(config)])).not.toContain(KEY);
  });

  it("are refused in two places at once, and without a program or an absolute path", async () => {
    const file = write("key", KEY);
    expect(await problemsOf({ outage: { encryption_key: KEY, encryption_key_file: file } })).toContain(
      "outage.encryption_key_file: is set beside encryption_key; keep one of them",
    );
    expect(
      await problemsOf({ responses: { encryption_key_file: file, encryption_key_command: ["cat", file] } }),
    ).toContain("responses.encryption_key_command: is set beside encryption_key_file; keep one of them");
    expect(await problemsOf({ outage: { encryption_key_command: [] } })).toContain(
      "must be a program and its arguments",
    );
    expect(await problemsOf({ outage: { encryption_key_command: [""] } })).toContain("must begin with the name");
    expect(await problemsOf({ outage: { encryption_key_file: "key" } })).toContain("must be an absolute path");
  });

  it("that cannot be read are problems of the configuration with their place, and commands run only for one without others", async () => {
    const mark = join(folder, "mark");
    const problems = await problemsOf({
      outage: { encryption_key_file: join(folder, "missing") },
      responses: { encryption_key_command: ["touch", mark] },
    });
    expect(problems).toMatch(/parley\.yaml:1:\d+: outage\.encryption_key_file: there is no such file/);
    expect(problems).toMatch(/parley\.yaml:1:\d+: responses\.encryption_key_command: what it printed is no key/);
    expect(existsSync(mark)).toBe(true);
    rmSync(mark);
    expect(await problemsOf({ workers: 0, responses: { encryption_key_command: ["touch", mark] } })).toContain(
      "workers",
    );
    expect(existsSync(mark)).toBe(false);
  });

  it("that were not read are never treated as missing", () => {
    const text = JSON.stringify({ account_credentials: { encryption_key_command: ["true"] } });
    const parse = () => parseConfig({ file: "parley.yaml", text, env: {} });
    expect(parse).toThrow("account_credentials.encryption_key_command: has not been read");
    expect(loadConfig({ file: write("parley.yaml", text), env: {} }).accountCredentials).toEqual({});
  });

  it("are checked by config check, and not read by commands that use none", async () => {
    const mark = join(folder, "mark");
    const script = `touch ${mark}; echo no access to the vault >&2; exit 3`;
    const responses = { store_days: 1, encryption_key_command: ["sh", "-c", script] };
    const file = write("parley.yaml", JSON.stringify({ responses, data_dir: join(folder, "data") }));
    const run = async (...argv: readonly string[]) => {
      return captureCli(argv, { env: { PATH: process.env["PATH"] } });
    };
    expect((await run("migrate", "--config", file)).code).toBe(0);
    expect((await run("health", "--config", file)).code).not.toBe(78);
    expect((await run("serve", "--role", "front", "--core", "core:50051", "--config", file)).code).toBe(0);
    expect(existsSync(mark)).toBe(false);
    for (const argv of [
      ["config", "check", file],
      ["keys", "list", "--config", file],
    ])
      expect(await run(...argv)).toMatchObject({
        code: 78,
        stderr: expect.stringContaining("it ended with status 3: no access to the vault"),
      });
    expect(existsSync(mark)).toBe(true);
  });
});

describe("reading a key", () => {
  const env = { PATH: process.env["PATH"] };
  const byShell = (script: string, limitMs?: number) =>
    readKeyOf({ setting: "", command: ["sh", "-c", script] }, env, limitMs);

  it.each([
    ["the output is no key", "echo planted-secret", /^what it printed is no key: that is 32 bytes/],
    ["there is none", "true", /^what it printed is no key/],
    ["there is much output", "yes planted-secret", /^it printed more than 4096 bytes; print only the key$/],
    [
      "it fails",
      "echo planted-secret; echo denied by policy >&2; exit 4",
      /^it ended with status 4: denied by policy$/,
    ],
    ["it is killed", "kill -TERM $$", /^it ended with SIGTERM$/],
    ["it asks", "read answer || exit 5", /^it ended with status 5$/],
    ["it talks much", "printf '%01000d\\n\\033[31m' 7 >&2; exit 1", /^it ended with status 1: 0{300}…$/],
  ])("says what is wrong when %s, and nothing of the output", async (_, script, problem) => {
    const read = await byShell(script);
    expect(read).toEqual({ problem: expect.stringMatching(problem) });
    expect(JSON.stringify(read)).not.toContain("planted");
  });

  it("ends at its time limit, also where a child of the program goes on", async () => {
    const begunMs = performance.now();
    expect(await byShell("sleep 20 & echo waiting >&2; sleep 20", 200)).toEqual({
      problem: "it did not end within 0.2 s: waiting",
    });
    expect(performance.now() - begunMs).toBeLessThan(10_000);
  });

  it("says why a program cannot be started", async () => {
    const start = (program: string) => readKeyOf({ setting: "", command: [program] }, env);
    expect(await start("no-such-program")).toEqual({ problem: expect.stringContaining("there is no such program") });
    const file = write("program", "");
    chmodSync(file, 0o600);
    expect(await start(file)).toEqual({ problem: "this user may not run it" });
  });

  it("refuses what is no file with a key", async () => {
    const read = (name: string) => readKeyOf({ setting: "", file: join(folder, name) }, env);
    mkdirSync(join(folder, "folder"));
    write("large", "a".repeat(4_097));
    write("other", "planted-secret");
    expect(await read("folder")).toEqual({ problem: "it is not a file" });
    expect(await read("large")).toEqual({ problem: "it is larger than 4096 bytes; this is not a key" });
    expect(await read("other")).toEqual({ problem: expect.stringMatching(/^its content is no key/) });
    expect(await readKeyOf({ setting: "", file: "/dev/zero" }, env)).toEqual({ problem: "it is not a file" });
  });
});
