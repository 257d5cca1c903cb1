import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createChannel } from "../../src/alerts/channels.ts";
import { captureCli } from "../support/cli.ts";
import { parseConfig } from "../../src/config/parse.ts";
import { systemClock } from "../../src/core/clock.ts";
import { credentialCipherOf } from "../../src/gateway/account-credentials.ts";
import { alertPortsOf } from "../../src/gateway/alerts.ts";
import { openStore } from "../../src/store/store.ts";
import { findingOf } from "../store/contracts/alert-store.ts";

const CONFIG = JSON.stringify({ alerts: { allow_private: true } });

let folder: string;
let server: Server;
let status = 200;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "parley-alerts-cli-"));
  writeFileSync(join(folder, "parley.yaml"), CONFIG);
  server = createServer((_, response) => response.writeHead(status).end());
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const dataDir = join(folder, "data");
  const store = await openStore({ dataDir, databaseUrl: undefined });
  const credentials = credentialCipherOf({ accountCredentials: {}, dataDir, providers: [] });
  const inForce = () => parseConfig({ file: "parley.yaml", text: CONFIG, env: {} });
  const log = { record: async () => undefined };
  const ports = alertPortsOf({ store, credentials, inForce }, { clock: systemClock, log });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/secret-path`;
  const actor = { actorId: undefined, network: undefined };
  await createChannel(ports, {
    kind: "webhook",
    name: "On call",
    url,
    recipients: [],
    rules: [],
    leastSeverity: "warning",
    actor,
  });
  const open = [{ finding: findingOf(), receivers: [] }];
  await store.alerts.apply({ nowMs: Date.now(), seen: [], open, resolve: [] });
  await store.close();
});
afterAll(() => {
  server.close();
  rmSync(folder, { recursive: true });
});

function run(...argv: readonly string[]) {
  return runWith("", ...argv);
}

async function runWith(input: string, ...argv: readonly string[]) {
  return captureCli(argv, {
    env: { PARLEY_CONFIG: join(folder, "parley.yaml"), PARLEY_DATA_DIR: join(folder, "data") },
    readInput: () => Promise.resolve(input),
  });
}

it("alerts list shows open ones, or those that are resolved", async () => {
  expect((await run("alerts", "list")).stdout).toMatch(/warning +open +Requests fail/);
  expect(JSON.parse((await run("alerts", "list", "--json")).stdout)).toMatchObject([
    { rule: "error_rate", subject: "model:m", account: null, resolved: null },
  ]);
  expect(JSON.parse((await run("alerts", "list", "--resolved", "--json")).stdout)).toEqual([]);
  expect(await run("alerts", "list", "--limit", "0")).toMatchObject({ code: 2 });
});

it("alerts channels and alerts test show no secret, and a test says why it failed", async () => {
  const { stdout } = await run("alerts", "channels");
  expect(stdout).toMatch(/chan_\w+ +webhook +On call +http:\/\/127\.0\.0\.1:\d+ +all\n/);
  expect((await run("alerts", "test", "On call")).stdout).toMatch(/^The test was sent to On call/);
  status = 500;
  const failed = await run("alerts", "test", "On call");
  expect(failed).toMatchObject({ code: 1, stderr: "parley: On call: The receiver answered with status 500.\n" });
  expect((await run("alerts", "test", "nobody")).stderr).toContain("there is no channel nobody");
  expect(JSON.stringify([stdout, failed])).not.toContain("secret-path");
});

it("credentials reseal encrypts channels anew", async () => {
  expect((await run("credentials", "reseal")).stdout).toBe("Encrypted 1 credentials anew.\n");
  status = 200;
  expect((await run("alerts", "test", "On call")).code).toBe(0);
});

it("alerts add and remove channels, with entries in the audit log, and say what is wrong", async () => {
  const url = "https://hooks.example.com/secret-path";
  const added = await runWith(`${url}\n`, "alerts", "add", "Money", "--url-stdin", "--rules", "budget,unusual_spend");
  expect(added.stdout).toMatch(/^whsec_[\w+/=]+\n$/);
  expect(added.stderr).toMatch(/^Added chan_\w+ \(Money\)\.\n/);
  const flags = ["--kind", "slack", "--url-stdin", "--severity", "critical", "--json"];
  const slack = await runWith(url, "alerts", "add", "Slack", ...flags);
  expect(JSON.parse(slack.stdout)).toMatchObject({
    kind: "slack",
    target: "https://hooks.example.com",
    rules: "all",
    least_severity: "critical",
    signing_key: null,
  });
  const { stdout } = await run("alerts", "channels");
  expect(stdout).toMatch(/webhook +Money +https:\/\/hooks\.example\.com +budget,unusual_spend\n/);
  expect(stdout).toMatch(/slack +Slack +https:\/\/hooks\.example\.com +all \(critical\)\n/);
  expect((await run("alerts", "remove", "Money")).stdout).toMatch(/^Removed chan_\w+ \(Money\)\.\n$/);
  expect((await run("alerts", "remove", "Money")).stderr).toContain("there is no channel Money");
  const audit = (await run("audit", "list", "--json")).stdout;
  expect(audit).toMatch(/alert_channel_removed[^]*alert_channel_created/);
  for (const [problem, ...argv] of [
    ["--kind webhook needs --url-stdin", "X"],
    ["--kind email needs --recipients LIST", "X", "--kind", "email"],
    ["--kind is one of webhook, slack, email", "X", "--kind", "pager"],
    ["--rules is one of budget, budget_forecast, end_user_budget", "X", "--url-stdin", "--rules", "budgets"],
    ["e-mail needs the section smtp", "X", "--kind", "email", "--recipients", "a@example.com"],
  ])
    expect((await runWith(url, "alerts", "add", ...argv)).stderr).toContain(problem);
  expect(JSON.stringify([stdout, audit, added, slack])).not.toContain("secret-path");
});
