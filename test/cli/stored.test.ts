import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { captureCli } from "../support/cli.ts";

const SECRET = "the-credential-of-the-provider";

let folder: string;
beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), "parley-stored-cli-"))));
afterAll(() => rmSync(folder, { recursive: true }));

/** Environment of the next commands, beside the data directory. */
let env: Record<string, string>;
beforeEach(() => void (env = {}));

const run = (argv: readonly string[], input = "") =>
  captureCli(argv, {
    env: { PARLEY_CONFIG: join(folder, "parley.yaml"), PARLEY_DATA_DIR: join(folder, "data"), ...env },
    readInput: async () => input,
  });

const ACME = '{ dialect: openai, base_url: "https://api.acme.example/v1", connections: { max: 7 } }';

describe("commands for the stored configuration", () => {
  beforeAll(() =>
    writeFileSync(
      join(folder, "parley.yaml"),
      "models: { own: { provider: alpha, upstream_model: x } }\nsimulator: { enabled: true }\n",
    ),
  );

  it("make a database, and say which version there is", async () => {
    env = { ACME_KEY: SECRET };
    const set = await run(["config", "set", "providers", "acme", "--value", ACME, "--credential-env", "ACME_KEY"]);
    expect(set).toMatchObject({ code: 0, stdout: "The stored configuration has version 1.\n" });
    expect(set.stderr).toContain("Made a new database");
    const { stdout } = await run(["config", "list", "--json"]);
    const entries = JSON.parse(stdout) as { section: string; name: string; origin: string; entry: string }[];
    expect(entries.find(({ name }) => name === "acme")).toMatchObject({ origin: "stored", entry: ACME });
    expect(entries.find(({ name }) => name === "own")).toMatchObject({ origin: "file" });
    expect(stdout).not.toContain(SECRET);
  });

  it("are checked without a change with --check", async () => {
    const wrong = await run(["config", "set", "models", "acme/one", "--value", "{ provider: acme }", "--check"]);
    expect(wrong).toMatchObject({ code: 1, stdout: "" });
    expect(wrong.stderr).toContain("upstream_model: is required");
    const right = ["config", "set", "models", "acme/one", "--value", "{ provider: acme, upstream_model: one }"];
    expect((await run([...right, "--check"])).stdout).toBe("The change is valid.\n");
    expect((await run(right)).stdout).toBe("The stored configuration has version 2.\n");
    expect((await run(right)).stdout).toBe("Nothing has changed.\n");
    expect((await run(["models"])).stdout).toMatch(/acme\/one +acme +one/);
  });

  it("export a document that an import takes, from a file and from standard input", async () => {
    const { stdout: document } = await run(["config", "export"]);
    const file = join(folder, "stored.yaml");
    writeFileSync(file, `${document}aliases:\n  gpt: acme/one\n`);
    expect((await run(["config", "import", file, "--comment", "from git"])).stdout).toContain("version 3");
    expect((await run(["config", "versions", "--show", "3"])).stdout).toBe("aliases.gpt\n+ acme/one\n");
    expect((await run(["config", "import", "-"], document)).stdout).toContain("version 4");
    expect((await run(["config", "rollback", "3"])).stdout).toContain("version 5");
    const { stdout } = await run(["config", "versions", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject([
      { version: 5, comment: "roll back to version 3", by: null },
      {},
      { comment: "from git" },
      {},
      {},
    ]);
    expect((await run(["config", "import", "-"], "models: { a: [ }")).code).toBe(1);
  });

  it("say what is wrong with the command line", async () => {
    for (const [argv, text] of [
      [["config", "set", "provider", "x", "--value", "{}"], "SECTION is one of providers"],
      [["config", "set", "models", "x"], "--entry FILE or --value YAML is required"],
      [["config", "set", "models", "x", "--entry", "/nowhere"], "/nowhere cannot be read"],
      [["config", "set", "providers", "x", "--credential-env", "ABSENT"], "ABSENT is not set"],
      [["config", "rollback", "first"], "VERSION is the number of a version"],
    ] as const) {
      const { code, stderr } = await run(argv);
      expect(code).toBe(2);
      expect(stderr).toContain(text);
    }
    expect((await run(["config", "rollback", "99"])).stderr).toContain("there is no version 99");
  });

  it("encrypt credentials anew with another key, while the previous one is given", async () => {
    const before = readFileSync(join(folder, "data", "account-credentials.key"), "utf8");
    const key = randomBytes(32).toString("base64");
    const stateOf = async (): Promise<string | undefined> => {
      const { stdout } = await run(["config", "list", "--json"]);
      const entries = JSON.parse(stdout) as { name: string; state: string }[];
      return entries.find(({ name }) => name === "acme")?.state;
    };
    env = { PARLEY_ACCOUNT_CREDENTIALS_ENCRYPTION_KEY: key };
    expect(await stateOf()).toBe("without credential");
    const unread = await run(["credentials", "reseal"]);
    expect(unread).toMatchObject({ code: 1, stdout: "Encrypted 0 credentials anew.\n" });
    expect(unread.stderr).toContain("1 cannot be decrypted");
    env = { ...env, PARLEY_ACCOUNT_CREDENTIALS_PREVIOUS_ENCRYPTION_KEY: before };
    expect(await stateOf()).toBe("in force");
    expect(await run(["credentials", "reseal"])).toMatchObject({
      code: 0,
      stdout: "Encrypted 1 credentials anew.\n",
      stderr: "",
    });
    env = { PARLEY_ACCOUNT_CREDENTIALS_ENCRYPTION_KEY: key };
    expect(await stateOf()).toBe("in force");
  });

  it("remove a credential, and a provider with it", async () => {
    const credential = ["config", "remove", "providers", "acme"];
    expect((await run([...credential, "--credential-only"])).code).toBe(0);
    expect((await run(credential)).stderr).toContain("there is no such provider");
    expect((await run(["config", "import", "-"], "{}")).code).toBe(0);
    expect((await run(["config", "export"])).stdout).toBe("{}\n");
  });
});
