import { randomBytes } from "node:crypto";
import { beforeEach, describe, expect, it } from "vitest";
import type { NewEntry } from "../../src/access/audit-log.ts";
import type { Config } from "../../src/config/config.ts";
import { type ConfigSource, parseConfig } from "../../src/config/parse.ts";
import { entriesOf } from "../../src/config/stored-document.ts";
import { systemClock } from "../../src/core/clock.ts";
import { Failure } from "../../src/core/failure.ts";
import { credentialCipherOf } from "../../src/gateway/account-credentials.ts";
import type { StoredPorts } from "../../src/gateway/stored-changes.ts";
import { changeEntries, type EntryChange, importDocument, rollBack } from "../../src/gateway/stored-edits.ts";
import { toStored } from "../../src/gateway/stored-watch.ts";
import type { Store } from "../../src/store/store.ts";
import { rejectionsOf } from "../support/errors.ts";
import { openTestStore } from "../support/test-store.ts";

const SECRET = "the-credential-of-acme";
const ACTOR = { actorId: "acct_1", network: "192.0.2.1" };

let store: Store;
let entries: NewEntry[];
let file: string;
let encryptionKey: string | undefined;
let dataDir: string;

beforeEach(async () => {
  ({ store, dataDir } = await openTestStore());
  entries = [];
  file = "{}";
  encryptionKey = undefined;
});

const sourceOf = (): ConfigSource => ({ file: "parley.yaml", text: file, env: {} });

function ports(): StoredPorts {
  const accountCredentials = encryptionKey === undefined ? {} : { encryptionKey };
  const cipher = credentialCipherOf({ accountCredentials, dataDir, providers: [] });
  return {
    store: store.configuration,
    cipher,
    source: sourceOf,
    inForce: () => parseConfig(sourceOf()),
    clock: systemClock,
    log: { record: async (entry) => void entries.push(entry) },
  };
}

const entry = (section: EntryChange["section"], name: string, text: string | undefined, apiKeys: string[] = []) => ({
  section,
  name,
  entry: text,
  apiKeys,
  removesCredential: false,
});

const change = (expected: number, ...changes: EntryChange[]) =>
  changeEntries(ports(), { expected, comment: "", validateOnly: false, actor: ACTOR, changes });

const ACME = entry("providers", "acme", "dialect: anthropic\nbase_url: https://api.acme.example", [SECRET]);
const MODEL = entry("models", "acme/one", "provider: acme\nupstream_model: one");

/** The configuration that a process would have now. */
async function inForce(): Promise<Config> {
  return parseConfig({ ...sourceOf(), stored: toStored(await store.configuration.read(), ports().cipher) });
}

const failureOf = rejectionsOf(Failure);

describe("a change of the stored configuration", () => {
  it("is a version with its author, and its credential is encrypted and nowhere else", async () => {
    expect(await change(0, ACME, MODEL)).toMatchObject({ version: 1, warnings: [] });
    const config = await inForce();
    expect(config.providers).toMatchObject([{ name: "acme", apiKeys: [SECRET] }]);
    expect(config.models.map(({ id }) => id)).toEqual(["acme/one"]);
    const rows = await store.configuration.read();
    expect(rows?.version).toMatchObject({ version: 1, actor_id: "acct_1" });
    expect(rows?.credentials).toMatchObject([{ address: "https://api.acme.example", set_by: "acct_1", keys: 1 }]);
    expect(JSON.stringify([rows, entries])).not.toContain(SECRET);
    expect(entries).toMatchObject([
      {
        action: "configuration_changed",
        object: { kind: "configuration", id: "1" },
        before: { version: 0 },
        after: { version: 1 },
        details: { changed: "providers.acme, models.acme/one" },
      },
      {
        action: "provider_credential_set",
        object: { kind: "provider", id: "acme" },
        before: { credential: null },
        after: { credential: "set" },
        details: { address: "https://api.acme.example" },
      },
    ]);
  });

  it("made from an older version is a conflict, also when two begin at the same moment", async () => {
    const made = await Promise.allSettled([change(0, ACME), change(0, { ...ACME, name: "other" })]);
    expect(made.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    expect((await failureOf(change(0, MODEL))).code).toBe("conflict");
    expect(await store.configuration.latest()).toBe(1);
  });

  it("may remove the credential alone, with a warning", async () => {
    await change(0, ACME);
    const removal = { ...entry("providers", "acme", undefined), removesCredential: true };
    const { version, warnings } = await change(1, removal);
    expect([version, warnings.join()]).toEqual([2, expect.stringContaining("its credential is missing")]);
    expect((await store.configuration.read())?.credentials).toEqual([]);
  });

  it("keeps the comments and the order of what it does not change", async () => {
    await change(
      0,
      ACME,
      entry("models", "acme/two", "# for drafts\nprovider: acme\nupstream_model: two # cheap"),
      MODEL,
    );
    await change(1, entry("models", "acme/one", ""));
    expect((await store.configuration.read())?.version.document).toContain("upstream_model: two # cheap");
  });

  it("with a mistake names line and column in the text of its entry, all mistakes at once", async () => {
    const failure = await failureOf(
      change(
        0,
        entry("providers", "acme", "dialect: anthropic\n\nbase_ulr: x", [SECRET]),
        entry("models", "acme/one", "provider: acme\nupstream_model: one\nprice: { input: -1 }"),
      ),
    );
    expect(failure.code).toBe("invalid_request");
    expect(failure.violations.map(({ field }) => field)).toEqual(["changes[0].entry:3:1", "changes[1].entry:3:17"]);
    expect(failure.violations[0]?.description).toContain("did you mean base_url?");
    expect(await store.configuration.latest()).toBe(0);
  });

  it("with text that is no YAML names line and column too", async () => {
    const failure = await failureOf(change(0, entry("providers", "acme", "dialect: openai\na: [")));
    expect(failure.violations[0]?.field).toMatch(/^changes\[0\]\.entry:2:\d+$/);
  });

  it("with an alias of YAML is refused, since its entries are changed one by one", async () => {
    const failure = await failureOf(change(0, entry("models", "x", "provider: &a alpha\nupstream_model: *a")));
    expect(failure.violations[0]?.field).toBe("changes[0].entry:2:17");
    const document = "models:\n  a: &a { provider: alpha, upstream_model: x }\n  b: *a\n";
    const whole = { expected: 0, comment: "", validateOnly: false, actor: ACTOR, document };
    expect((await failureOf(importDocument(ports(), whole))).violations[0]?.field).toBe("document:3:6");
  });

  it("that leaves a model without its provider is refused", async () => {
    await change(0, ACME, MODEL);
    const failure = await failureOf(change(1, entry("providers", "acme", "")));
    expect(failure.message).toContain('models["acme/one"].provider: there is no such provider');
  });

  it("only for validation changes nothing", async () => {
    const checked = await changeEntries(ports(), {
      expected: 0,
      comment: "",
      validateOnly: true,
      actor: ACTOR,
      changes: [ACME],
    });
    expect(checked.version).toBeUndefined();
    expect([await store.configuration.latest(), entries]).toEqual([0, []]);
  });

  it("is refused where the operator has switched the stored configuration off", async () => {
    file = "stored_configuration: { enabled: false }";
    expect((await failureOf(change(0, ACME))).code).toBe("permission_denied");
  });

  it("warns where a setting would end the simulator without leaving a model", async () => {
    const limit = entry("limits", "requests_per_minute", "30");
    const { warnings } = await change(0, limit);
    expect(warnings).toEqual([expect.stringContaining("simulator.enabled: true in the configuration file keeps it")]);
    file = "simulator: { enabled: true }";
    expect(await change(1, { ...limit, entry: "31" })).toMatchObject({ version: 2, warnings: [] });
  });

  it("is refused with the reason where the file uses models of the simulator, which it would end", async () => {
    file = "aliases: { gpt-5: alpha-haiku-4.5 }";
    const limit = entry("limits", "requests_per_minute", "30");
    const { violations } = await failureOf(change(0, limit));
    expect(violations).toMatchObject([
      { description: expect.stringContaining("the simulator, whose models the configuration file uses") },
      { description: expect.stringContaining("there is no model alpha-haiku-4.5") },
    ]);
    file += "\nsimulator: { enabled: true }";
    expect(await change(0, limit)).toMatchObject({ version: 1, warnings: [] });
  });

  it("of an entry that the file has is allowed, and says that it is not used", async () => {
    file = "providers: { acme: { dialect: openai } }\nmodels: { x: { provider: acme, upstream_model: x } }";
    const { warnings } = await change(0, entry("providers", "acme", "dialect: openai"));
    expect(warnings.join()).toContain("providers.acme: is not used");
    expect((await failureOf(change(1, ACME))).violations[0]?.field).toBe("changes[0].api_keys");
  });
});

describe("a stored credential", () => {
  it("is needed again when the address of its provider changes", async () => {
    await change(0, ACME, MODEL);
    const moved = "dialect: anthropic\nbase_url: https://elsewhere.example";
    const failure = await failureOf(change(1, entry("providers", "acme", moved)));
    expect(failure.violations).toMatchObject([{ field: "changes[0].api_keys" }]);
    expect(failure.message).toContain("another address");
    expect(await change(1, entry("providers", "acme", moved, ["another-credential"]))).toMatchObject({ version: 2 });
    // Going back does not take the new credential to the old address.
    const { warnings } = await rollBack(ports(), {
      expected: 2,
      comment: "",
      validateOnly: false,
      actor: ACTOR,
      to: 1,
    });
    expect(warnings.join()).toContain("another address");
    expect((await inForce()).providers).toMatchObject([{ apiKeys: [], lack: "other address" }]);
  });

  it("is needed where the dialect has one", async () => {
    const failure = await failureOf(change(0, { ...ACME, apiKeys: [] }));
    expect(failure.violations).toMatchObject([{ field: "changes[0].api_keys" }]);
  });

  it("can be changed alone, and is removed with its provider", async () => {
    await change(0, ACME);
    expect(await change(1, entry("providers", "acme", undefined, ["a-newer-credential"]))).toMatchObject({
      version: 2,
    });
    expect((await inForce()).providers).toMatchObject([{ apiKeys: ["a-newer-credential"] }]);
    await change(2, entry("providers", "acme", ""));
    expect((await store.configuration.read())?.credentials).toEqual([]);
    expect(entries.at(-1)?.action).toBe("provider_credential_removed");
  });

  it("is unusable with another key, and the provider's requests fail, but nothing else", async () => {
    encryptionKey = randomBytes(32).toString("base64");
    await change(0, ACME, MODEL);
    encryptionKey = randomBytes(32).toString("base64");
    const config = await inForce();
    expect(config.stored?.leftOut).toEqual([]);
    expect(config.providers).toMatchObject([{ name: "acme", lack: "unreadable", apiKeys: [] }]);
  });

  it("of a wrong form is refused without being repeated", async () => {
    for (const secret of ["has a space", "file:/etc/passwd", "x".repeat(9_000), "test"]) {
      const failure = await failureOf(change(0, { ...ACME, apiKeys: [secret] }));
      expect(failure.violations[0]?.field).toBe("changes[0].api_keys");
      expect(failure.message).not.toContain(secret);
    }
  });
});

describe("a whole document", () => {
  const replace = (expected: number, document: string) =>
    importDocument(ports(), { expected, comment: "", validateOnly: false, actor: ACTOR, document });

  it("replaces the one before, and credentials of providers that stay are kept", async () => {
    await change(0, ACME, entry("providers", "gone", "dialect: openai", ["the-credential-of-gone"]));
    const document = "# from git\nproviders:\n  acme: { dialect: anthropic, base_url: https://api.acme.example/ }\n";
    expect(await replace(1, document)).toMatchObject({ version: 2, warnings: [] });
    const rows = await store.configuration.read();
    expect(rows?.version.document).toBe(document);
    expect(rows?.credentials.map(({ provider }) => provider)).toEqual(["acme"]);
    expect((await inForce()).providers).toMatchObject([{ apiKeys: [SECRET] }]);
  });

  it("removes no credential for a caller without the permission for it, and neither does a change or a roll back", async () => {
    await change(0, entry("providers", "other", "dialect: openai", ["the-credential-of-other"]));
    await change(1, ACME);
    const facts = { expected: 2, comment: "", validateOnly: false, keepsCredentials: true, actor: ACTOR };
    for (const attempt of [
      () => importDocument(ports(), { ...facts, document: "{}" }),
      () => rollBack(ports(), { ...facts, to: 1 }),
      () => changeEntries(ports(), { ...facts, changes: [entry("providers", "acme", "")] }),
    ])
      await expect(attempt()).rejects.toMatchObject({
        code: "permission_denied",
        message: expect.stringContaining("acme"),
      });
    expect((await store.configuration.read())?.credentials.length).toBe(2);
    const document =
      "providers:\n  acme: { dialect: anthropic, base_url: https://a.example/ }\n  other: { dialect: openai }\n";
    expect(await importDocument(ports(), { ...facts, document })).toMatchObject({ version: 3 });
  });

  it("is bounded", async () => {
    const failure = await failureOf(replace(0, `# ${"x".repeat(256 * 1024)}\nmodels: {}\n`));
    expect(failure.message).toContain("at most 256 KiB");
    const facts = { expected: 0, validateOnly: false, actor: ACTOR, document: "{}" };
    for (const comment of ["x".repeat(501), "\0"])
      expect((await failureOf(importDocument(ports(), { ...facts, comment }))).message).toContain("comment");
  });

  it("with a mistake names its line and column", async () => {
    const failure = await failureOf(replace(0, "models:\n  a: { provider: nobody, upstream_model: x }\nhttp: {}\n"));
    expect(failure.violations.map(({ field }) => field)).toEqual(["document:3:7", "document:2:18"]);
    expect((await failureOf(replace(0, "a: ["))).violations[0]?.field).toMatch(/^document:1:\d+$/);
  });

  it("of an earlier version is a new version", async () => {
    await change(0, ACME, MODEL);
    await replace(1, "{}");
    expect(await store.configuration.read()).toMatchObject({ version: { document: "" }, credentials: [] });
    const back = await rollBack(ports(), { expected: 2, comment: "", validateOnly: false, actor: ACTOR, to: 1 });
    expect(back).toMatchObject({ version: 3, comment: "roll back to version 1" });
    expect(back.warnings.join()).toContain("its credential is missing");
    const names = entriesOf((await store.configuration.read())!.version).map(({ name }) => name);
    expect(names).toEqual(["acme", "acme/one"]);
    const failure = await failureOf(
      rollBack(ports(), { expected: 3, comment: "", validateOnly: false, actor: ACTOR, to: 9 }),
    );
    expect(failure.violations[0]?.field).toBe("version");
  });
});
