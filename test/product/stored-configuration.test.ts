import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Client, Code, ConnectError, createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import {
  ConfigurationSection as Section,
  ConfigurationService,
  CredentialState,
  EntryOrigin,
  EntryState,
} from "../../gen/parley/console/v1/configuration_pb.js";
import { BadRequestSchema } from "../../gen/google/rpc/error_details_pb.js";
import { type Product, startProduct } from "../support/product.ts";
import { signUpFirst } from "../support/signed-up.ts";
import { answerJson, answerText, startUpstream, type Upstream } from "./support/upstream.ts";
import { postChat } from "../support/post-json.ts";
import { runBeside } from "../support/cli.ts";

const SECRET = "the-credential-of-the-provider";

let upstream: Upstream;

beforeAll(async () => {
  upstream = await startUpstream((exchange) => {
    const { request, response } = exchange;
    if (request.headers.authorization !== `Bearer ${SECRET}`)
      return answerJson(response, 401, { error: { message: `wrong key: ${request.headers.authorization}` } });
    if (request.url === "/v1/models") return answerJson(response, 200, { data: [{ id: "one" }, { id: "two" }] });
    return answerText(exchange, "hi");
  });
});
afterAll(() => upstream.close());

const PRIVATE = { stored_configuration: { allow_private: true } };

const provider = () => `dialect: openai\nbase_url: ${upstream.url}/v1\nallow_private: true\n`;

async function ask({ url, firstKey }: Product, model: string): Promise<number> {
  const response = await postChat(url, firstKey, { model });
  await response.body?.cancel();
  return response.status;
}

/** The service for the first administrator. */
async function administratorOf({ url }: Product): Promise<Client<typeof ConfigurationService>> {
  return createClient(ConfigurationService, await signUpFirst(url));
}

const readiness = async ({ operationsUrl }: Product) =>
  (await (await fetch(`${operationsUrl}/readyz`)).json()) as { stored_configuration: object };

describe.each([1, 2])("with %i workers", (workers) => {
  let product: Product;
  let service: Client<typeof ConfigurationService>;
  beforeAll(async () => {
    product = await startProduct({ config: { ...PRIVATE, workers } });
    service = await administratorOf(product);
  });
  afterAll(() => product?.stop());

  it("a provider, its credential and a model are added in one change, and serve at once", async () => {
    expect(await ask(product, "acme/one")).toBe(404);
    const { version, applied } = await service.changeEntries({
      expectedVersion: 0n,
      comment: "the first provider",
      changes: [
        { section: Section.PROVIDERS, name: "acme", entry: provider(), apiKeys: [SECRET] },
        { section: Section.MODELS, name: "acme/one", entry: "provider: acme\nupstream_model: one" },
      ],
    });
    expect([version?.version, applied]).toEqual([1n, true]);
    await expect.poll(async () => ask(product, "acme/one")).toBe(200);
    const { entries, latestVersion } = await service.listEntries({});
    expect(latestVersion).toBe(1n);
    const found = entries.filter(({ name }) => name.startsWith("acme"));
    expect(found).toMatchObject([
      {
        origin: EntryOrigin.STORED,
        state: EntryState.IN_FORCE,
        models: 1,
        credential: { state: CredentialState.USABLE },
      },
      { origin: EntryOrigin.STORED, state: EntryState.IN_FORCE, entry: "provider: acme\nupstream_model: one" },
    ]);
    expect(await readiness(product)).toMatchObject({ stored_configuration: { version: 1, left_out: 0 } });
  });

  it("a stale change is refused as aborted, a wrong one with line and column", async () => {
    const remove = { section: Section.MODELS, name: "acme/one", entry: "" };
    const stale = await service
      .changeEntries({ expectedVersion: 0n, changes: [remove] })
      .catch((cause: unknown) => ConnectError.from(cause));
    expect(stale).toMatchObject({ code: Code.Aborted, rawMessage: expect.stringContaining("has version 1") });
    const wrong = { section: Section.MODELS, name: "acme/two", entry: "provider: acme\nupstream: two" };
    const error = ConnectError.from(
      await service
        .changeEntries({ expectedVersion: 1n, changes: [wrong], validateOnly: true })
        .catch((cause) => cause),
    );
    const [violations] = error.findDetails(BadRequestSchema);
    expect(violations?.fieldViolations).toMatchObject([{ field: "changes[0].entry:2:1" }]);
  });

  it("presets are listed", async () => {
    const { presets } = await service.listPresets({});
    expect(presets.find(({ name }) => name === "mistral")).toMatchObject({
      dialect: "openai",
      baseUrl: "https://api.mistral.ai/v1",
      needsCredential: true,
      credentialName: "MISTRAL_API_KEY",
    });
    expect(presets.find(({ name }) => name === "ollama")).toMatchObject({ isLocal: true, needsCredential: false });
  });

  it("a provider is tested before it is stored, and lists its models", async () => {
    const draft = { name: "draft", entry: provider(), upstreamModel: "one" };
    const { models, listFailure, failure, durationMs } = await service.testProvider({ ...draft, apiKeys: [SECRET] });
    expect([models.map(({ name }) => name), listFailure, failure]).toEqual([["one", "two"], undefined, undefined]);
    expect(durationMs).toBeGreaterThan(0);
    const wrong = await service.testProvider({ ...draft, apiKeys: ["wrong-credential"] });
    expect(wrong.failure).toMatchObject({ outcome: "upstream_refused_us", httpStatusCode: 401 });
    expect(JSON.stringify(wrong, (_, value) => (typeof value === "bigint" ? String(value) : value))).not.toContain(
      "wrong-credential",
    );
    const error = await service
      .testProvider({ ...draft, entry: "dialect: openai\nbase_ulr: x" })
      .catch((cause: unknown) => ConnectError.from(cause));
    const [violations] = (error as ConnectError).findDetails(BadRequestSchema);
    expect(violations?.fieldViolations).toMatchObject([{ field: "entry:2:1" }]);
    const ofFile = service.testProvider({ ...draft, apiKeys: ["file:/etc/hostname"] });
    await expect(ofFile).rejects.toMatchObject({ code: Code.InvalidArgument });
    const saved = await service.testProvider({ name: "acme", upstreamModel: "two" });
    expect([saved.models.length, saved.failure]).toEqual([2, undefined]);
  });

  it("versions are listed, compared, exported and rolled back", async () => {
    const { version } = await service.changeEntries({
      expectedVersion: 1n,
      changes: [{ section: Section.ALIASES, name: "gpt-5", entry: "acme/one" }],
    });
    expect(version?.version).toBe(2n);
    await expect.poll(async () => ask(product, "gpt-5")).toBe(200);
    const { versions } = await service.listVersions({ limit: 1 });
    expect(versions.map(({ version: number }) => number)).toEqual([2n]);
    const { differences } = await service.getVersion({ version: 2n });
    expect(differences).toMatchObject([{ section: Section.ALIASES, name: "gpt-5", before: "", after: "acme/one" }]);
    const { document } = await service.export({});
    expect(document).toContain("gpt-5: acme/one");
    expect(await service.rollBack({ expectedVersion: 2n, version: 1n })).toMatchObject({ applied: true });
    await expect.poll(async () => ask(product, "gpt-5")).toBe(404);
    expect(await ask(product, "acme/one")).toBe(200);
    expect(await service.import({ expectedVersion: 3n, document })).toMatchObject({ applied: true, warnings: [] });
    await expect.poll(async () => ask(product, "gpt-5")).toBe(200);
  });

  it("commands do the same, with the credential from standard input", async () => {
    expect(await runBeside(product, ["config", "list"])).toMatch(/providers +acme +stored +in force/);
    const two = ["models", "acme/two", "--value", "{ provider: acme, upstream_model: two }"];
    const version = /version (\d+)/.exec(await runBeside(product, ["config", "set", ...two]))![1]!;
    await expect.poll(async () => ask(product, "acme/two")).toBe(200);
    await runBeside(product, ["config", "set", "providers", "acme", "--credential-stdin"], "another-credential\n");
    await expect.poll(async () => ask(product, "acme/two")).toBe(500);
    await runBeside(product, ["config", "set", "providers", "acme", "--credential-stdin"], `${SECRET}\n`);
    await expect.poll(async () => ask(product, "acme/two")).toBe(200);
    expect(await runBeside(product, ["config", "versions", "--show", version])).toContain(
      "+ { provider: acme, upstream_model: two }",
    );
    await runBeside(product, ["config", "rollback", "1", "--comment", "as at first"]);
    expect(await runBeside(product, ["config", "versions"])).toContain("as at first");
    expect(await runBeside(product, ["config", "export"])).not.toContain("acme/two");
    await expect(
      runBeside(product, ["config", "set", "models", "x", "--value", "{ provider: nobody }"]),
    ).rejects.toThrow("there is no such provider");
  });

  it("the credential is in no log, no answer and no file", async () => {
    const { output, home } = product;
    const shown = [output.stdout, output.stderr, await runBeside(product, ["config", "export"])].join();
    const database = readFileSync(join(home, "data", "parley.db"), "latin1");
    for (const secret of [SECRET, "another-credential"]) {
      expect(shown).not.toContain(secret);
      expect(database).not.toContain(secret);
    }
  });
});

it("a start leaves out what the file contradicts, says so, and uses it again when the file allows it", async () => {
  const first = await startProduct({ config: PRIVATE });
  onTestFinished(() => first.stop());
  const acme = [
    "config",
    "set",
    "providers",
    "acme",
    "--value",
    `{ dialect: openai, base_url: "${upstream.url}/v1", allow_private: true }`,
  ];
  await runBeside(first, [...acme, "--credential-stdin"], SECRET);
  await runBeside(first, ["config", "set", "models", "acme/one", "--value", "{ provider: acme, upstream_model: one }"]);
  await expect.poll(async () => ask(first, "acme/one")).toBe(200);
  // Private addresses are not allowed any more.
  first.writeConfig({});
  first.signal("SIGHUP");
  await expect
    .poll(async () => (await readiness(first)).stored_configuration)
    .toEqual({ version: 2, latest: 2, left_out: 2 });
  expect(await ask(first, "acme/one")).toBe(404);
  // The simulator does not answer in place of what is left out.
  expect(await ask(first, "alpha-haiku-4.5")).toBe(404);
  await expect.poll(() => first.output.stdout + first.output.stderr).toContain("is not valid and is left out");
  first.writeConfig(PRIVATE);
  first.signal("SIGHUP");
  await expect.poll(async () => ask(first, "acme/one")).toBe(200);
  // Nor the stored configuration at all.
  first.writeConfig({ stored_configuration: { enabled: false } });
  first.signal("SIGHUP");
  await expect.poll(async () => ask(first, "acme/one")).toBe(404);
});

it("a key that does not decrypt a stored credential is named in the log, and the one before is used again after a reload", async () => {
  const first = await startProduct({ config: PRIVATE });
  onTestFinished(() => first.stop());
  const entry = `{ dialect: openai, base_url: "${upstream.url}/v1", allow_private: true }`;
  await runBeside(first, ["config", "set", "providers", "acme", "--value", entry, "--credential-stdin"], SECRET);
  await runBeside(first, ["config", "set", "models", "acme/one", "--value", "{ provider: acme, upstream_model: one }"]);
  await expect.poll(async () => ask(first, "acme/one")).toBe(200);
  const encryption_key = randomBytes(32).toString("base64");
  first.writeConfig({ ...PRIVATE, account_credentials: { encryption_key } });
  first.signal("SIGHUP");
  await expect
    .poll(() => first.output.stdout + first.output.stderr)
    .toMatch(/"provider":"acme","lack":"unreadable","msg":"the credential of a stored provider cannot be used"/);
  await expect.poll(async () => ask(first, "acme/one")).toBe(500);
  first.writeConfig(PRIVATE);
  first.signal("SIGHUP");
  await expect.poll(async () => ask(first, "acme/one")).toBe(200);
});
