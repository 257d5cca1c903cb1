import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { captureCli } from "../support/cli.ts";

const KEY = "credential-of-the-provider";
const folder = mkdtempSync(join(tmpdir(), "parley-providers-"));
const file = join(folder, "parley.yaml");
let server: Server;

/** A server of OpenAI's dialect below /v1. */
beforeAll(async () => {
  server = createServer((request, response) => {
    request.resume().on("end", () => {
      const say = (status: number, body: object): void => {
        response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
      };
      if (request.url === "/v1/models" && request.headers.authorization === `Bearer ${KEY}`)
        return say(200, { data: Array.from({ length: 22 }, (_, index) => ({ id: `m-${index}` })) });
      if (request.url !== "/v1/chat/completions" && request.url !== "/v1/models")
        return void response.writeHead(404).end("<h1>Not found</h1>");
      if (request.headers.authorization !== `Bearer ${KEY}`) return say(401, { error: { message: `wrong: ${KEY}` } });
      say(200, {
        id: "x",
        choices: [{ index: 0, message: { role: "assistant", content: "hi" }, finish_reason: "length" }],
        usage: { prompt_tokens: 9, completion_tokens: 1, total_tokens: 10 },
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const at = (base_url: string, key = KEY) => ({ dialect: "openai", base_url, allow_private: true, api_keys: [key] });
  const providers = {
    right: at(`${base}/v1`),
    short: at(base),
    refused: at(`${base}/v1`, "credential-of-somebody-else"),
    away: at("http://127.0.0.1:1/v1"),
    silent: at(`${base}/v1`),
    imported: at(`${base}/v1`),
    locked: at(`${base}/v1`, "credential-of-somebody-else"),
    unreadable: at(`${base}/v1`, "file:/nowhere/key"),
  };
  const names = ["right", "short", "refused", "away", "unreadable"];
  const models: Record<string, unknown> = Object.fromEntries(
    names.map((name) => [`${name}/m`, { provider: name, upstream_model: "m-1" }]),
  );
  models["imported/*"] = models["locked/*"] = "import";
  writeFileSync(file, JSON.stringify({ providers, models }));
});
afterAll(() => {
  server.close();
  rmSync(folder, { recursive: true });
});

const run = (...argv: readonly string[]) => captureCli([...argv, "--config", file], { env: {} });

describe("providers test", () => {
  it("says that the provider answers, in what time and with how many tokens", async () => {
    const { code, stdout, stderr } = await run("providers", "test", "right");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(
      /^right answers: m-1 in \d+ ms, 9 \+ 1 tokens\.\nIt lists 22 models: m-0, .*m-19, and 2 more\.\n$/,
    );
  });

  it("reports a key's file that cannot be read for its own provider only", async () => {
    const { code, stderr } = await run("providers", "test", "unreadable");
    expect(code).toBe(78);
    expect(stderr).toMatch(/^A file with a key cannot be read:\n {2}providers\.unreadable\.api_keys\[0\]: ENOENT/);
    expect((await run("providers", "test", "right")).code).toBe(0);
  });

  it("asks for the list alone where models are imported", async () => {
    expect(await run("providers", "test", "imported")).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^It lists 22/),
    });
    const { code, stderr } = await run("providers", "test", "locked");
    expect(code).toBe(1);
    expect(stderr).toContain("locked does not answer for its list of models (HTTP 401)");
    expect(stderr).toContain("Check api_keys");
  });

  it.each([
    ["short", "(HTTP 404)", "base_url: an address of the dialect openai usually ends in /v1"],
    ["refused", "(HTTP 401)", "Check api_keys"],
    ["away", "ECONNREFUSED", "Check base_url, the network, and whether the server runs."],
  ])("says what is wrong with %s", async (name, said, advice) => {
    const { code, stdout, stderr } = await run("providers", "test", name);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain(said);
    expect(stderr).toContain(advice);
    expect(stderr).not.toContain(KEY);
  });

  it.each([
    [["nobody"], "nobody: there is no such provider; there are: right, short, refused, away, silent, imported, locked"],
    [["righ"], "did you mean right?"],
    [["silent"], "no model of silent makes completions; add one to models"],
    [["right", "--model", "away/m"], "right has no model away/m; it has: right/m"],
  ])("refuses %j", async (argv, problem) => {
    const { code, stderr } = await run("providers", "test", ...argv);
    expect(code).toBe(2);
    expect(stderr).toContain(problem);
  });
});
