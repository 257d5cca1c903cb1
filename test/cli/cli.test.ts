import { cpSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { hashApiKey, isApiKey } from "../../src/access/api-key.ts";
import { captureCli } from "../support/cli.ts";
import type { CliContext } from "../../src/cli/command.ts";
import { formatTable } from "../../src/cli/output.ts";
import { parseDuration } from "../../src/cli/command.ts";
import { openStore } from "../../src/store/store.ts";

/** A data directory after the gateway's first start, copied for each test. */
const started = mkdtempSync(join(tmpdir(), "parley-cli-"));
let directory: string;
beforeAll(() => makeDatabase(started));
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "parley-cli-"));
  cpSync(started, directory, { recursive: true });
});
afterEach(() => rmSync(directory, { recursive: true }));
afterAll(() => rmSync(started, { recursive: true }));

async function makeDatabase(dataDir: string): Promise<void> {
  await (await openStore({ dataDir, databaseUrl: undefined })).close();
}

const run = (line: string, context: Partial<CliContext> = {}) =>
  captureCli(line, { env: { PARLEY_DATA_DIR: directory }, ...context });

async function runJson<T>(line: string): Promise<T> {
  const { code, stdout, stderr } = await run(`${line} --json`);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout) as T;
}

interface KeyJson {
  readonly id: string;
  readonly key: string;
  readonly state: string;
}

describe("a wrong command line", () => {
  it.each([
    ["", "a command is missing"],
    ["serv", 'unknown command "serv"; did you mean "serve"?'],
    ["keys", 'unknown command "keys"; known commands: keys create, keys list'],
    ["keys creat --name a", 'unknown command "keys creat"; did you mean "keys create"?'],
    ["constructor", 'unknown command "constructor"\nSee: parley help\n'],
    ["serve --port 80", "unknown flag --port; known flags: --config, --role, --core, --help"],
    ["serve --confg f", "unknown flag --confg; did you mean --config?"],
    ["serve -x", "unknown flag -x"],
    ["serve --role back", "--role back: must be all, core or front"],
    ["serve --role front", "--role front needs --core: --role front --core HOST:PORT"],
    ["serve --role front --core core", '--core: "core" is not HOST:PORT'],
    ["serve --role core --core core:50051", "--core is for --role front only"],
    ["serve --core core:50051", "--core is for --role front only"],
    ["keys create --rpm many --name a", "--rpm is a whole number from 1"],
    ["keys create --budget 1,5 --name a", "--budget is a number of US dollars such as 25"],
    ["keys create --qps 5 --name a", "unknown flag --qps"],
    ["keys create --rmp 5 --name a", "unknown flag --rmp; did you mean --rpm?"],
    ["account list", 'unknown command "account"; did you mean "accounts list"?'],
    ["keys create --constructor a", "unknown flag --constructor"],
    ["keys create", "--name is required"],
    ["keys create --name --json", "--name needs a value: --name NAME"],
    ["keys create --name", "--name needs a value"],
    ["keys create --name a --name b", "--name is given twice"],
    ["keys create --name a --json=yes", "--json takes no value"],
    ["keys create --name a --expires 30", "--expires is a number and m, h, d or w"],
    ["keys create --name a --models alpha-opus-4.6", "did you mean alpha-opus-4.5?"],
    ["keys create --name a --capabilities image", "did you mean images?"],
    ["keys rotate", "ID is missing: parley keys rotate ID"],
    ["keys rotate key_1 --grace 2h", "--grace is one of 0, 1h, 24h, 7d"],
    ["keys revoke key_1 key_2", 'the argument "key_2" is not expected'],
    ["config check", "FILE is missing"],
    ["config convert portkey f", 'FORMAT: "portkey" is not known; known are: litellm'],
    ["simulate --listen 0.0.0.0:1", "add --allow-public"],
    ["simulate --listen nowhere", "--listen is host:port"],
    ["simulate --tokens-per-second fast", "--tokens-per-second is a number"],
    ["simulate --listen 127.0.0.1:0 --fault wrong", '--fault: unknown clause "wrong"; known are: '],
    ["simulate --listen 127.0.0.1:0 --chaos much", "--chaos is a whole number"],
    ["simulate --listen 127.0.0.1:0 --chaos 1 --chaos-percent 101", "--chaos-percent is a whole number from 1 to 100"],
    ["simulate --listen 127.0.0.1:0 --chaos-percent 5", "--chaos-percent needs --chaos"],
  ])("%j ends with 2 and suggests a correction", async (line, expected) => {
    const { code, stdout, stderr } = await run(line);
    expect(stderr).toContain(expected);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(/\nSee: parley .*\n$/);
  });
});

describe("help", () => {
  it("lists every command", async () => {
    for (const line of ["help", "--help", "-h"]) {
      const { code, stdout } = await run(line);
      expect(code).toBe(0);
      for (const name of ["serve", "simulate", "config check", "models", "keys create", "version"]) {
        expect(stdout).toContain(`  ${name} `);
      }
    }
  });

  it.each(["serve", "simulate", "config check", "models", "keys create", "keys list", "keys rotate", "keys revoke"])(
    "is printed for %s",
    async (name) => {
      const { code, stdout } = await run(`${name} --help`);
      expect(code).toBe(0);
      expect(stdout).toContain(`Usage: parley ${name}`);
    },
  );

  it.each([
    ["help keys create", "Usage: parley keys create [FLAGS]\n"],
    ["--help keys create", "Usage: parley keys create [FLAGS]\n"],
    ["help serve", "Usage: parley serve [FLAGS]\n"],
    ["help --help", "Usage: parley help [FLAGS]\n"],
  ])("of a command is printed by %j", async (line, usage) => {
    const { code, stdout } = await run(line);
    expect(code).toBe(0);
    expect(stdout).toContain(usage);
  });

  it.each(["keys --help", "keys -h", "help keys"])("lists the commands of a group by %j", async (line) => {
    const { code, stdout } = await run(line);
    expect(code).toBe(0);
    const names = Array.from(stdout.matchAll(/^ {2}(\w+ \w+) /gm), ([, name]) => name);
    expect(names).toEqual(["create", "list", "update", "rotate", "transfer", "revoke"].map((verb) => `keys ${verb}`));
  });

  it("does not include the version, which has its own command and flag", async () => {
    expect((await run("version")).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect((await run("--version")).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect((await run("version --sbom")).stderr).toMatch(/^parley: sbom\.cdx\.json is part of releases only/);
  });
});

describe("config check", () => {
  it("accepts a valid file, and prints all of it without secrets", async () => {
    const file = join(directory, "parley.yaml");
    writeFileSync(file, "providers: { alpha: { api_keys: [a-real-credential] } }");
    const plain = await run(`config check ${file}`);
    expect(plain.stdout).toBe(`${file} is valid. Models: 3, providers: 1, simulated: 0.\n`);
    const json = await run(`config check ${file} --json`);
    expect(JSON.parse(json.stdout)).toMatchObject({ file, providers: [{ apiKeys: ["…"] }] });
    expect(json.stdout).not.toContain("a-real-credential");
  });

  it("ends with 78 for an invalid file, with the place and without a stack trace", async () => {
    const file = join(directory, "parley.yaml");
    writeFileSync(file, "http:\n  lisen: x\n");
    const { code, stdout, stderr } = await run(`config check ${file}`);
    expect({ code, stdout }).toEqual({ code: 78, stdout: "" });
    expect(stderr).toBe(`${file} cannot be used:\n  ${file}:2:3: http.lisen: unknown key; did you mean listen?\n`);
  });
});

describe("config convert", () => {
  it("prints a file that config check accepts, and lists the rest on stderr", async () => {
    const source = join(import.meta.dirname, "..", "config", "litellm", "wildcards.yaml");
    const { code, stdout, stderr } = await run(`config convert litellm ${source}`);
    expect(code).toBe(0);
    expect(stderr).toMatch(
      new RegExp(`${source}:9:5: +no counterpart: +model_list\\[3\\].model_name: +Parley imports`),
    );
    expect(stderr).toMatch(/\nWithout a counterpart: 3; to be checked: \d\.\n$/);
    const file = join(directory, "parley.yaml");
    writeFileSync(file, stdout);
    const env = { OPENAI_API_KEY: "of-openai", ANTHROPIC_API_KEY: "of-anthropic", OPENROUTER_API_KEY: "of-openrouter" };
    expect(await run(`config check ${file}`, { env })).toMatchObject({ code: 0, stderr: "" });
  });

  it("ends with 78 for a file that cannot be read", async () => {
    const { code, stderr } = await run(`config convert litellm ${join(directory, "none.yaml")}`);
    expect({ code, stderr }).toMatchObject({ code: 78, stderr: expect.stringContaining("there is no such file") });
  });
});

describe("models", () => {
  it("are listed with their prices", async () => {
    const { stdout } = await run("models");
    expect(stdout.split("\n")).toHaveLength(10);
    expect(stdout).toMatch(/alpha-opus-4\.5 +alpha \(simulated\) +claude-opus-4-5-20251101 .* 5 \(list\) +25\n/);
    expect(stdout).toMatch(
      /gamma-embedding-3-small +gamma \(simulated\) .* 8192 +- +text +embedding +0\.02 \(list\) +-\n/,
    );
    expect(await runJson("models")).toHaveLength(8);
  });

  it("are followed by the names with several models", async () => {
    const file = join(directory, "routes.yaml");
    const targets = "[{ model: alpha-haiku-4.5, weight: 3 }, { model: beta-3-flash }]";
    writeFileSync(file, `models: { chat: { targets: ${targets}, policy: weighted } }`);
    const { stdout } = await run(`models --config ${file}`);
    expect(stdout).toMatch(
      /\n\nNAME +POLICY +TARGETS\nchat +weighted, affinity +alpha-haiku-4\.5 \(3\), beta-3-flash \(1\)\n$/,
    );
    expect((await runJson<object[]>(`models --config ${file}`)).at(8)).toMatchObject({
      id: "chat",
      policy: "weighted",
    });
    const { stdout: checked } = await run(`config check ${file}`);
    expect(checked).toBe(`${file} is valid. Models: 8, names with targets: 1, providers: 0, simulated: 3.\n`);
    const made = await runJson<{ readonly models: readonly string[] }>(
      `keys create --name chat --models chat --config ${file}`,
    );
    expect(made.models).toEqual(["chat"]);
  });
});

describe("keys", () => {
  it("are created, and only their hash is stored", async () => {
    const made = await runJson<KeyJson>(
      "keys create --name ci --models beta-3-flash --capabilities chat --expires 30d",
    );
    expect(made).toMatchObject({
      name: "ci",
      models: ["beta-3-flash"],
      capabilities: ["chat"],
      account: "acct_default",
    });
    expect(Object.keys(made).slice(0, 3)).toEqual(["id", "name", "key"]);
    expect(isApiKey(made.key)).toBe(true);
    const store = await openStore({ dataDir: directory, databaseUrl: undefined });
    expect(await store.keys.findByHash(hashApiKey(made.key))).toMatchObject({ record: { id: made.id } });
    await store.close();
    const { stdout } = await run("keys list");
    expect(stdout).toContain(made.id);
    expect(stdout).not.toContain(made.key);
  });

  it("are the only output on stdout, so that they can be piped", async () => {
    const { stdout, stderr } = await run("keys create --name ci");
    expect(isApiKey(stdout.trim())).toBe(true);
    expect(stderr).toMatch(/^Created key_\w+ \(ci\)\. Keep this key: it is not shown again\.\n$/);
  });

  it("are rotated and revoked", async () => {
    const first = await runJson<KeyJson>("keys create --name ci");
    const second = await runJson<KeyJson>(`keys rotate ${first.id} --grace 0`);
    expect(second).toMatchObject({ name: "ci", replaces: first.id });
    expect(await runJson(`keys revoke ${second.id}`)).toEqual({
      id: second.id,
      state: "revoked",
      predecessors: [],
    });
    const states = (await runJson<KeyJson[]>("keys list")).map(({ id, state }) => [id, state]);
    expect(Object.fromEntries(states)).toEqual({ [first.id]: "expired", [second.id]: "revoked" });
  });

  it("are revoked with the keys that they have replaced, unless --only is given", async () => {
    const first = await runJson<KeyJson>("keys create --name ci");
    const second = await runJson<KeyJson>(`keys rotate ${first.id}`);
    const third = await runJson<KeyJson>(`keys rotate ${second.id}`);
    expect((await run(`keys revoke ${third.id} --only`)).stdout).toBe(`Revoked ${third.id}.\n`);
    expect((await run(`keys revoke ${second.id}`)).stdout).toBe(`Revoked ${second.id}.\nRevoked ${first.id}.\n`);
    expect((await runJson<KeyJson[]>("keys list")).map(({ state }) => state)).toEqual(Array(3).fill("revoked"));
  });

  it("have labels and tags by flags, of which those without a flag stay", async () => {
    const made = await runJson<KeyJson>("keys create --name ci --require-region eu,ch --tags batch");
    expect(made).toMatchObject({ required_labels: { region: ["eu", "ch"] }, tags: ["batch"] });
    const update = (flags: string) => runJson<KeyJson>(`keys update ${made.id} ${flags}`);
    expect(await update("--require-retention none")).toMatchObject({
      required_labels: { region: ["eu", "ch"], retention: ["none"] },
      tags: ["batch"],
      limited_by_administrator: true,
    });
    expect(await update("--require-region any --require-retention any --tags none")).toMatchObject({
      required_labels: {},
      tags: [],
      limited_by_administrator: false,
    });
  });

  it("are limited by an administrator when the command line restricts them", async () => {
    const plain = await runJson<KeyJson>("keys create --name plain");
    const narrow = await runJson<KeyJson>("keys create --name narrow --rpm 5");
    expect([plain, narrow]).toMatchObject([{ limited_by_administrator: false }, { limited_by_administrator: true }]);
    const changed = await runJson<KeyJson>(`keys update ${plain.id} --budget 5`);
    expect(changed).toMatchObject({ limited_by_administrator: true });
  });

  it("have an entry of the audit log for each change, by the system's user, without a secret", async () => {
    const first = await runJson<KeyJson>("keys create --name ci");
    await run(`keys update ${first.id} --rpm 5`);
    const second = await runJson<KeyJson>(`keys rotate ${first.id}`);
    await run(`keys revoke ${second.id}`);
    const store = await openStore({ dataDir: directory, databaseUrl: undefined });
    const entries = await store.audit.list({ limit: 10, accountId: "acct_default" });
    await store.close();
    expect(JSON.stringify(entries)).not.toContain(first.key.slice(-20));
    expect(new Set(entries.map(({ actor }) => `${actor.kind} ${actor.id}`))).toEqual(
      new Set([`command_line ${userInfo().username}`]),
    );
    const updated = entries.find(({ action }) => action === "key_updated");
    expect([updated?.before, updated?.after].map((text) => JSON.parse(text!) as unknown)).toEqual([
      { requests_per_minute: null, limited_by_administrator: false },
      { requests_per_minute: 5, limited_by_administrator: true },
    ]);
    const kept = new Set(entries.map(({ action, object }) => `${action} ${object?.id}`));
    expect(kept).toEqual(
      new Set([
        `key_created ${first.id}`,
        `key_updated ${first.id}`,
        `key_rotated ${first.id}`,
        `key_revoked ${second.id}`,
        `key_revoked ${first.id}`,
      ]),
    );
  });

  it("that do not exist end the command with 1", async () => {
    expect(await run("keys revoke key_none")).toEqual({
      code: 1,
      stdout: "",
      stderr: "parley: id: there is no key key_none.\n",
    });
  });

  it("cannot be listed when the database cannot be opened", async () => {
    writeFileSync(join(directory, "file"), "");
    const { code, stderr } = await run("keys create --name a", { env: { PARLEY_DATA_DIR: join(directory, "file") } });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^parley: .*cannot be opened: the data_dir is not a directory\n$/);
  });

  it("are created in a new database if there is none, whose path is printed, and listing creates none", async () => {
    const elsewhere = join(directory, "elsewhere");
    const context = { env: { PARLEY_DATA_DIR: elsewhere } };
    const file = join(elsewhere, "parley.db");
    const listed = await run("keys list", context);
    expect(listed).toMatchObject({ code: 1, stdout: "" });
    expect(listed.stderr).toContain(`there is no database at ${file}; run this in the folder of the gateway`);
    expect(existsSync(file)).toBe(false);
    const made = await run("keys create --name a", context);
    expect(made.code).toBe(0);
    expect(made.stderr).toContain(`Made a new database: ${file}.`);
    expect((await run("keys create --name b", context)).stderr).not.toContain("database");
  });

  it("need no credential of a provider", async () => {
    const file = join(directory, "parley.yaml");
    writeFileSync(file, 'providers: { alpha: { dialect: anthropic, api_keys: ["${NOWHERE_SET}"] } }');
    for (const line of ["keys create --name a", "migrate", `backup ${join(directory, "copy.db")}`])
      expect(await run(`${line} --config ${file}`)).toMatchObject({ code: 0 });
    const checked = await run(`config check ${file}`);
    expect(checked).toMatchObject({ code: 78 });
    expect(checked.stderr).toContain("the environment variable NOWHERE_SET is not set");
  });
});

describe("serve", () => {
  it.each([
    ["serve", { name: "all" }],
    ["serve --role all", { name: "all" }],
    ["serve --role core", { name: "core" }],
    ["serve --role front --core dns:///cores:50051", { name: "front", core: "dns:///cores:50051" }],
  ])("reads the role: %s", async (line, role) => {
    const roles: unknown[] = [];
    const serve = async (_: unknown, given: unknown): Promise<number> => roles.push(given) - 1;
    expect((await run(line, { serve })).code).toBe(0);
    expect(roles).toEqual([role]);
  });

  it("passes the configuration's source on and ends with the server's exit code", async () => {
    const ports: unknown[] = [];
    const { code } = await run("serve", {
      env: { PARLEY_HTTP_LISTEN: "127.0.0.1:1234" },
      serve: async ({ env }) => {
        ports.push(env["PARLEY_HTTP_LISTEN"]);
        return 7;
      },
    });
    expect({ code, ports }).toEqual({ code: 7, ports: ["127.0.0.1:1234"] });
  });

  it("prints the reason of a failure in one line", async () => {
    const serve = () => Promise.reject(new Error("port 8080 is in use"));
    expect(await run("serve", { serve })).toEqual({ code: 1, stdout: "", stderr: "parley: port 8080 is in use\n" });
  });
});

describe("simulate", () => {
  it("answers until it is stopped", async () => {
    let url = "";
    const { code } = await run("simulate --listen 127.0.0.1:0 --json", {
      stdout: { write: (text) => ({ url } = JSON.parse(text) as { url: string }) },
      untilStopped: async () => {
        // It begins to wait before it prints its address.
        await expect.poll(() => url).not.toBe("");
        expect((await fetch(url)).status).toBeLessThan(500);
      },
    });
    expect(code).toBe(0);
    await expect(fetch(url)).rejects.toThrow(TypeError);
  });

  it("prints the share of faults at its start", async () => {
    const { stdout } = await run("simulate --listen 127.0.0.1:0 --chaos 7", { untilStopped: async () => {} });
    expect(stdout).toMatch(/^The simulator listens on .*\nChaos with seed 7: about 20 % of the requests get a fault\./);
    const { stdout: json } = await run("simulate --listen 127.0.0.1:0 --chaos 7 --chaos-percent 50 --json", {
      untilStopped: async () => {},
    });
    expect(JSON.parse(json)).toMatchObject({ chaos: { seed: 7, percent: 50 } });
  });
});

describe("a duration", () => {
  it.each([
    ["90m", 5_400_000],
    ["12h", 43_200_000],
    ["30d", 2_592_000_000],
    ["4w", 2_419_200_000],
    ["0d", undefined],
    ["30", undefined],
    ["-1d", undefined],
    ["9999999w", undefined],
  ])("%s is %s ms", (text, expected) => expect(parseDuration(text)).toBe(expected));
});

it("a table aligns its columns", () => {
  expect(
    formatTable([
      ["A", "B"],
      ["long", ""],
      ["x", "y"],
    ]),
  ).toBe("A     B\nlong\nx     y");
});
