import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Finding } from "../../src/alerts/alert.ts";
import { openStore } from "../../src/store/store.ts";
import { findBarriersEverywhere } from "./support/accessibility.ts";
import { PASSWORD, setUp, type Site, startSite, type Visit } from "./support/site.ts";

interface Received {
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

let receiver: Server;
let received: Received[];
let site: Site;
let ada: Visit;
let bob: Visit;

beforeAll(async () => {
  received = [];
  receiver = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (piece: string) => (body += piece));
    request.on("end", () => {
      received.push({ headers: request.headers, body });
      response.writeHead(request.url === "/broken" ? 500 : 200).end();
    });
  });
  await new Promise<void>((listening) => receiver.listen(0, "127.0.0.1", listening));
  site = await startSite({ config: { sign_up: "open", alerts: { allow_private: true, latency_factor: 4 } } });
  ada = await site.visit("/");
  await setUp(ada.page);
  bob = await site.visit("/sign-up");
  await bob.page.getByLabel("E-mail").fill("bob@example.com");
  await bob.page.getByLabel("Password").fill(PASSWORD);
  await bob.page.getByRole("button", { name: "Create" }).click();
  await bob.page.getByRole("heading", { name: "Overview", exact: true }).waitFor();
});
afterAll(async () => {
  await site?.close();
  receiver?.closeAllConnections();
  receiver?.close();
});

/** Opens alerts as an evaluation does, beside the running product, and sends them to all channels. */
async function openAlerts(...findings: Partial<Finding>[]): Promise<void> {
  const store = await openStore({ dataDir: join(site.product.home, "data"), databaseUrl: undefined });
  const accounts = await store.accounts.list({ limit: 10, after: undefined });
  const owner = accounts.find(({ email }) => email === "bob@example.com")!.id;
  const receivers = (await store.alerts.channels()).map(({ id, name }) => ({ channelId: id, recipient: name }));
  const open = findings.map((changes) => ({
    finding: {
      rule: "error_rate" as const,
      severity: "warning" as const,
      subject: "key:key_1",
      period: "",
      accountId: owner,
      title: "66 % of the requests of the key “ci” fail",
      detail: "Of 60 requests of the last ten minutes 0 failed and 40 were refused.",
      ...changes,
    },
    receivers,
  }));
  await store.alerts.apply({ nowMs: Date.now(), seen: [], open, resolve: [] });
  await store.close();
}

const DOWN: Partial<Finding> = {
  subject: "model:alpha-haiku-4.5",
  severity: "critical",
  accountId: undefined,
  title: "80 % of the requests to alpha-haiku-4.5 fail",
  detail: "40 of 50 requests of the last ten minutes failed.",
};

async function openPage({ page }: Visit): Promise<void> {
  await page.goto(`${site.product.url}/alerts`);
  await page.getByRole("heading", { name: "Alerts", exact: true }).waitFor();
}

describe("the page of alerts", () => {
  it("says that there are none, and is accessible", async () => {
    await openPage(ada);
    await ada.page.getByText("No open alerts").waitFor();
    await ada.page.getByLabel("Failed requests in ten minutes (percent)").waitFor();
    expect(await findBarriersEverywhere(ada.page)).toEqual([]);
  });

  it("adds a webhook, shows its key once, and sends a test that the key verifies", async () => {
    const { page } = ada;
    await page.getByRole("button", { name: "Add channel" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("On call");
    await dialog.getByLabel("Address").fill("ftp://example.com");
    await dialog.getByRole("button", { name: "Add channel" }).click();
    await dialog.getByText("Must be an https address").waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await dialog.getByLabel("Address").fill(`http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`);
    await dialog.getByRole("button", { name: "Add channel" }).click();
    const key = await page.getByTestId("secret").innerText();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.getByRole("button", { name: "I have saved it" }).click();
    await page.getByRole("button", { name: "Send a test to On call" }).click();
    await page.getByText("The test was sent.").waitFor();
    const [{ headers, body }] = received as [Received];
    expect(new Webhook(key).verify(body, headers as Record<string, string>)).toMatchObject({ type: "test" });
    expect(await page.content()).not.toContain(key);
  });

  it("shows open alerts with their messages, and counts them in the navigation", async () => {
    const { page } = ada;
    await openAlerts({}, DOWN);
    await expect
      .poll(
        async () => {
          await openPage(ada);
          await page.getByRole("list", { name: "Open alerts" }).waitFor();
          return page.getByText("1 of 1 messages sent").count();
        },
        { timeout: 30_000 },
      )
      .toBe(2);
    await page.getByText("1 of 1 messages sent").first().click();
    await page
      .getByText(/On call: sent/)
      .first()
      .waitFor();
    await page.getByRole("navigation", { name: "Pages" }).getByText("2 open").waitFor();
    expect(received.filter(({ body }) => body.includes("alert.opened"))).toHaveLength(2);
    expect(await findBarriersEverywhere(page)).toEqual([]);
  });

  it("acknowledges and mutes, with who did it, and ends that", async () => {
    const { page } = ada;
    await page.getByRole("button", { name: /Acknowledge: 80 %/ }).click();
    await page.getByText(/Acknowledged by you/).waitFor();
    await page.getByRole("navigation", { name: "Pages" }).getByText("1 open").waitFor();
    await page.getByRole("button", { name: /^Mute: 66 %/ }).click();
    await page.getByRole("dialog").getByLabel("For").selectOption("8 hours");
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.getByRole("dialog").getByRole("button", { name: "Mute" }).click();
    await page.getByText(/Muted by you until/).waitFor();
    await expect.poll(() => page.getByRole("navigation", { name: "Pages" }).getByText("open").count()).toBe(0);
    await page.getByRole("button", { name: /^Unmute: 66 %/ }).click();
    await page.getByRole("button", { name: /^Mute: 66 %/ }).waitFor();
  });

  it("changes thresholds but those of the file, and says what is wrong", async () => {
    const { page } = ada;
    const panel = page.getByRole("region", { name: "Thresholds" });
    const percent = panel.getByLabel("Failed requests in ten minutes (percent)");
    expect(await panel.getByLabel("Latency, times the usual").isDisabled()).toBe(true);
    await percent.fill("101");
    await panel.getByRole("button", { name: "Save thresholds" }).click();
    await panel.getByText("Must be a number from 0 to 100.").waitFor();
    await percent.fill("15");
    await panel.getByLabel("Budget used (percent)").fill("75, 100");
    await panel.getByRole("button", { name: "Save thresholds" }).click();
    await panel.getByText("Saved.").waitFor();
    await openPage(ada);
    expect(await percent.inputValue()).toBe("15");
    expect(await panel.getByLabel("Budget used (percent)").inputValue()).toBe("75, 100");
    expect(await panel.getByLabel("Latency, times the usual").inputValue()).toBe("4");
  });

  it("shows members the alerts of their own account only, which they acknowledge", async () => {
    const { page } = bob;
    await openPage(bob);
    await page.getByText("66 % of the requests of the key “ci” fail").waitFor();
    expect(await page.getByRole("listitem").filter({ hasText: "alpha-haiku" }).count()).toBe(0);
    expect(await page.getByRole("region", { name: "Channels" }).count()).toBe(0);
    expect(await page.getByRole("button", { name: /Mute/ }).count()).toBe(0);
    await page.getByRole("button", { name: /Acknowledge/ }).click();
    await page.getByText(/Acknowledged by you/).waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
  });

  it("chooses which alerts a channel gets", async () => {
    const { page } = ada;
    await openPage(ada);
    const item = page.getByRole("list", { name: "Channels" }).getByRole("listitem");
    await item.getByText("Alerts: all").waitFor();
    await page.getByRole("button", { name: "Edit On call" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Severity").waitFor();
    const boxes = dialog.getByRole("checkbox");
    expect(await boxes.count()).toBe(9);
    for (const box of await boxes.all()) await box.uncheck();
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByText("Must have at least one rule").waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    for (const name of ["Latency", "Provider down"]) await dialog.getByLabel(name).check();
    await dialog.getByLabel("Severity").selectOption("Critical only");
    await dialog.getByRole("button", { name: "Save" }).click();
    await item.getByText("Critical alerts: latency, provider down").waitFor();
    await dialog.waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Edit On call" }).click();
    await dialog.getByLabel("Severity").waitFor();
    expect(await dialog.getByRole("checkbox", { checked: true }).count()).toBe(2);
    expect(await dialog.getByLabel("Severity").inputValue()).toBe("2");
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
  });

  it("removes a channel, with the keyboard alone", async () => {
    const { page } = ada;
    await openPage(ada);
    await page.getByRole("button", { name: "Remove On call" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").getByRole("button", { name: "Remove channel" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Remove On call" }).waitFor({ state: "detached" });
    expect([...ada.complaints, ...bob.complaints]).toEqual([]);
  });
});
