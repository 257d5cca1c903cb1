import { join } from "node:path";
import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import OpenAI from "openai";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RequestService } from "../../gen/parley/console/v1/request_pb.js";
import { openStore } from "../../src/store/store.ts";
import { writeHistory } from "../support/history.ts";
import { findBarriersEverywhere } from "./support/accessibility.ts";
import { createKey, openKeys, PASSWORD, setUp, type Site, startSite, type Visit } from "./support/site.ts";

const HOSTILE = "<img src=x onerror=alert(1)>";

let site: Site;
let visit: Visit;
let page: Page;
let secret = "";

beforeAll(async () => {
  site = await startSite({ config: { sign_up: "open" } });
  visit = await site.visit("/");
  ({ page } = visit);
  await setUp(page);
  secret = await createKey(page, `app ${HOSTILE}`);
});
afterAll(() => site?.close());

interface Asked {
  readonly model?: string;
  readonly prompt?: string;
  readonly stream?: boolean;
  readonly fallback_models?: readonly string[];
  readonly temperature?: string;
}

/** Sends a request with this key. Returns the completion ID, or the request ID of a failed request. */
async function ask({ model = "alpha-haiku-4.5", prompt = "Hello!", ...more }: Asked, apiKey = secret): Promise<string> {
  const client = new OpenAI({ apiKey, baseURL: `${site.product.url}/v1`, maxRetries: 0 });
  const messages = [{ role: "user", content: prompt }];
  try {
    const asked = { model, messages, ...more } as unknown as OpenAI.ChatCompletionCreateParams;
    const answer = await client.chat.completions.create(asked);
    if ("id" in answer) return answer.id;
    let id = "";
    for await (const chunk of answer) id = chunk.id;
    return id;
  } catch (error) {
    return (error as InstanceType<typeof OpenAI.APIError>).requestID ?? "";
  }
}

const rows = () => page.getByRole("table", { name: "Requests" }).getByRole("row");
const row = (text: string) => rows().filter({ hasText: text });

/** Opens the log and waits until the live stream is connected. */
async function openLog(query = "", of: Page = page): Promise<void> {
  const watched = of.waitForResponse((response) => response.url().endsWith(".RequestService/Watch"));
  await of.goto(`${site.product.url}/requests${query}`);
  await of.getByRole("heading", { name: "Requests", exact: true }).waitFor();
  await watched;
  await of.getByText("Connecting…").waitFor({ state: "detached" });
}

/** Returns a client of the service with the session of a browser. */
async function serviceOf(of: Page) {
  const cookies = await of.context().cookies();
  const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join("; ");
  const signedIn: Interceptor = (next) => (request) => {
    request.header.set("cookie", cookie);
    return next(request);
  };
  const transport = createConnectTransport({ baseUrl: site.product.url, httpVersion: "1.1", interceptors: [signedIn] });
  return createClient(RequestService, transport);
}

const fact = (name: string) => page.locator("dl > div", { has: page.getByText(name, { exact: true }) }).locator("dd");

// The steps depend on each other.
describe("the request log", () => {
  it("shows an empty state without requests", async () => {
    await openLog();
    await page.getByText("No requests yet").waitFor();
    expect(await page.getByRole("switch", { name: "Live" }).getAttribute("aria-checked")).toBe("true");
  });

  it("shows requests live: served, streamed, failed, refused and served by a fallback", async () => {
    await ask({});
    await row("alpha-haiku-4.5").filter({ hasText: "Success" }).waitFor();
    await ask({ model: "beta-3-flash", stream: true });
    expect(await row("beta-3-flash").innerText()).toMatch(/HTTP, streamed[\s\S]*Success[\s\S]*time to first token/);
    await ask({ prompt: "[[fault: status=503]]" });
    await row("Provider unavailable").waitFor();
    await ask({ model: HOSTILE });
    await row("Refused: model not found").filter({ hasText: HOSTILE }).waitFor();
    await ask({ temperature: "hot" });
    await row("Refused: invalid request").waitFor();
    await ask({ model: "alpha-opus-4.5", prompt: "[[fault: status=529; times=2]]", fallback_models: ["beta-3-flash"] });
    await row("fallback for alpha-opus-4.5").waitFor();
    // The first row contains the column names; the latest request is the next row.
    expect(await rows().count()).toBe(7);
    expect(await rows().nth(1).innerText()).toContain("fallback for");
    expect(await row(`app ${HOSTILE}`).count()).toBe(6);
  });

  it("announces new requests to screen readers", async () => {
    const announcements = page.locator("[role=status]");
    await expect
      .poll(() => announcements.allTextContents(), { timeout: 15_000 })
      .toContainEqual(expect.stringMatching(/ new requests\.$/));
  });

  it("does not change while paused, and then shows the missed requests", async () => {
    await page.getByRole("switch", { name: "Live" }).click();
    await page.getByText("Paused").waitFor();
    await ask({ model: "beta-3-pro-preview" });
    expect(await row("beta-3-pro-preview").count()).toBe(0);
    await page.getByRole("switch", { name: "Live" }).click();
    await row("beta-3-pro-preview").waitFor();
  });

  it("filters requests, with the filter in the URL", async () => {
    await page.getByLabel("Status").selectOption("All errors");
    await row("Provider unavailable").waitFor();
    await expect.poll(() => row("Success").count()).toBe(0);
    await ask({ prompt: "[[fault: status=400]] [[fault: id=2]]" });
    await row("Rejected by provider").waitFor();
    await page.getByLabel("Model", { exact: true }).selectOption("alpha-opus-4.5");
    await page.getByText("No requests match these filters.").waitFor();
    expect(new URL(page.url()).search).toBe("?outcome=failed&model=alpha-opus-4.5");
    await page.getByLabel("Status").selectOption("All statuses");
    await row("fallback for alpha-opus-4.5").waitFor();
    await page.reload();
    await row("fallback for alpha-opus-4.5").waitFor();
    expect(await page.getByLabel("Model", { exact: true }).inputValue()).toBe("alpha-opus-4.5");
    await page.getByRole("button", { name: "Clear all" }).click();
    await row("Rejected by provider").waitFor();
    expect(new URL(page.url()).search).toBe("");
  });

  it("has a chip for each filter, which removes it by the keyboard and says so", async () => {
    const search = "?outcome=failed&model=alpha-opus-4.5&range=24h&tag=blue&order=cost";
    await page.goto(`${site.product.url}/requests${search}`);
    const chips = page.getByRole("group", { name: "Active filters" });
    const names = async () =>
      (await chips.getByRole("listitem").allTextContents()).map((text) => text.replace("Remove filter ", ""));
    await expect
      .poll(names)
      .toEqual(["Time: Last 24 hours", "Status: All errors", "Model: alpha-opus-4.5", "Tag: blue"]);
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await chips.getByRole("button", { name: "Remove filter Status: All errors" }).press("Enter");
    await expect.poll(names).toEqual(["Time: Last 24 hours", "Model: alpha-opus-4.5", "Tag: blue"]);
    expect(new URL(page.url()).search).toBe("?model=alpha-opus-4.5&range=24h&tag=blue&order=cost");
    const focused = () => page.locator(":focus").textContent();
    // The focus goes to the next one, and from the last one to the one before.
    expect(await focused()).toBe("Remove filter Model: alpha-opus-4.5");
    await chips.getByRole("button", { name: "Remove filter Tag: blue" }).press("Space");
    await expect.poll(focused).toBe("Remove filter Model: alpha-opus-4.5");
    expect(await chips.getByRole("status").innerText()).toBe("Filters: Time: Last 24 hours, Model: alpha-opus-4.5");
    expect(await page.getByLabel("Model", { exact: true }).inputValue()).toBe("alpha-opus-4.5");
    await chips.getByRole("button", { name: "Clear all" }).press("Enter");
    await expect.poll(() => chips.getByRole("status").innerText()).toBe("No filters");
    expect(await focused()).toBe("No filters");
    // The order is no filter.
    expect(new URL(page.url()).search).toBe("?order=cost");
  });

  it("shows an error for an invalid filter in the URL", async () => {
    await page.goto(`${site.product.url}/requests?outcome=${encodeURIComponent(HOSTILE)}`);
    await page.getByText("filter.outcome: must be served, failed, process_lost or a failure code.").first().waitFor();
    expect(await page.getByLabel("Status").inputValue()).toBe(HOSTILE);
    await page.getByRole("button", { name: "Clear all" }).click();
    await row("Success").first().waitFor();
  });

  it("contains requests that were refused before it was opened, in order", async () => {
    await openLog("?outcome=model_not_found");
    await row("Refused: model not found").filter({ hasText: HOSTILE }).waitFor();
    await openLog();
    await row("Refused: invalid request").waitFor();
    await expect.poll(() => rows().nth(1).innerText()).not.toContain("Refused");
  });

  it("finds a request by its ID", async () => {
    await openLog();
    const id = await ask({ prompt: `[[fault: status=400; message=${HOSTILE}]]` });
    await page.getByLabel("Find by ID").fill("req_nothing");
    await page.getByRole("button", { name: "Find" }).click();
    await page.getByText("Request not found.").waitFor();
    await page.getByLabel("Find by ID").fill(` ${id} `);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Request", exact: true }).waitFor();
    expect(await fact("Request ID").innerText()).toContain(id);
  });

  it("holds back new requests while the user reads further down", async () => {
    const store = await openStore({ dataDir: join(site.product.home, "data"), databaseUrl: undefined });
    await writeHistory(store.ledger, { count: 200, untilMs: Date.now() - 60_000, days: 1 });
    await store.close();
    await openLog();
    await page.getByRole("button", { name: "Show more" }).click();
    await expect.poll(() => rows().count()).toBeGreaterThan(100);
    await rows().nth(60).scrollIntoViewIfNeeded();
    const link = await rows().nth(60).getByRole("link").getAttribute("href");
    const top = async () => (await page.locator(`a[href="${link}"]`).boundingBox())?.y;
    const before = await top();
    const id = await ask({ model: "alpha-sonnet-4.5" });
    await page.getByRole("button", { name: "1 new" }).waitFor();
    expect(await top()).toBe(before);
    await page.getByRole("button", { name: "1 new" }).click();
    await expect.poll(() => rows().nth(1).getByRole("link").getAttribute("href")).toBe(`/requests?request=${id}`);
    await expect.poll(() => page.evaluate("document.activeElement.getAttribute('aria-label')")).toBe("Log");
  });
});

describe("the page of a request", () => {
  const open = async (id: string): Promise<void> => {
    await page.goto(`${site.product.url}/requests/${id}`);
    await page.getByRole("heading", { name: "Details" }).waitFor();
  };

  it("shows the attempts of a request served by a fallback", async () => {
    // The wait is random without retry-after, and one of few milliseconds is not shown.
    const fallback = { model: "alpha-opus-4.5", fallback_models: ["beta-3-flash"] };
    const id = await ask({ ...fallback, prompt: "[[fault: status=529; retry-after=1; times=2; id=3]]", stream: true });
    await open(id);
    const attempts = await page.getByRole("region", { name: "Attempts" }).getByRole("listitem").allInnerTexts();
    expect(attempts.map((text) => text.split(/\s*\n\s*/).slice(0, 2))).toEqual([
      ["alpha-opus-4.5", "Provider unavailable"],
      ["alpha-opus-4.5", "Provider unavailable"],
      ["beta-3-flash", "Success"],
    ]);
    expect(attempts[0]).toMatch(
      /HTTP 529 · started at \d+ ms · took \d+ ms\s+Connect and send \d+ ms · Wait for response \d+ ms.*\s+The upstream provider is temporarily overloaded\./,
    );
    expect(attempts[1]).toMatch(/waited [\d.]+ s · started at [\d.]+ s/);
    expect(await fact("Requested model").innerText()).toBe("alpha-opus-4.5");
    expect(await fact("Endpoint").innerText()).toBe("HTTP · Chat Completions (streamed)");
    expect(await fact("Requests per minute").innerText()).toMatch(/^\d+ of 600 remaining · resets in/);
    await page.getByText("Prompts and responses are never stored.").waitFor();
    await page.getByRole("button", { name: "Copy the completion ID" }).click();
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(id);
    await fact("Key").getByRole("link").click();
    await row("fallback for alpha-opus-4.5").first().waitFor();
    expect(new URL(page.url()).search).toMatch(/^\?key=key_\w+$/);
  });

  it("shows the failure, the error message for the client, and advice", async () => {
    await open(await ask({ prompt: "[[fault: status=503; id=4]]" }));
    const outcome = await page.getByRole("region", { name: "Status" }).innerText();
    expect(outcome).toMatch(
      /Provider unavailable[\s\S]*Error message returned to the client:[\s\S]*The upstream provider failed\./,
    );
    expect(outcome).toContain("set fallback_models");
  });

  it("exists for a refused request", async () => {
    await open(await ask({ model: HOSTILE }));
    const outcome = await page.getByRole("region", { name: "Status" }).innerText();
    expect(outcome).toContain("Refused: model not found");
    expect(outcome).toContain(`The model '${HOSTILE}' does not exist`);
    expect(await fact("Requested model").innerText()).toBe(HOSTILE);
    expect(await fact("Key").innerText()).toBe(`app ${HOSTILE}`);
  });

  it("shows an error for an unknown ID", async () => {
    await page.goto(`${site.product.url}/requests/${encodeURIComponent(`${HOSTILE}/%`)}`);
    await page.getByText("Request not found").waitFor();
    expect(await page.locator("main").innerText()).toContain(`No request has the ID ${HOSTILE}/%.`);
  });

  it("causes no browser errors", () => {
    expect(visit.complaints).toEqual([]);
  });
});

describe("another account", () => {
  it("cannot see the requests: not in the log, not live, not by calling the services", async () => {
    const bob = await site.visit("/sign-up");
    await bob.page.getByLabel("E-mail").fill("bob@example.com");
    await bob.page.getByLabel("Password").fill(PASSWORD);
    await bob.page.getByRole("button", { name: "Create" }).click();
    await bob.page.getByRole("heading", { name: "Overview", exact: true }).waitFor();
    await openKeys(bob.page);
    await openLog("", bob.page);
    const bobsKey = await createKeyOf(bob.page);
    await openLog("", bob.page);
    const service = await serviceOf(bob.page);
    const controller = new AbortController();
    const watched: string[] = [];
    const watching = (async () => {
      for await (const { requests } of service.watch({}, { signal: controller.signal }))
        watched.push(...requests.map(({ id }) => id));
    })().catch((error: unknown) => ConnectError.from(error).code);

    const [served, refused] = [await ask({}), await ask({ model: "nothing" })];
    const own = await ask({ model: "beta-3-flash" }, bobsKey);
    await bob.page.getByRole("row").filter({ hasText: "beta-3-flash" }).waitFor();
    await expect.poll(() => watched).toEqual([own]);
    expect(await bob.page.getByRole("table", { name: "Requests" }).getByRole("row").count()).toBe(2);
    expect(await bob.page.getByLabel("Account").count()).toBe(0);

    expect((await service.list({ limit: 100 })).requests.map(({ id }) => id)).toEqual([own]);
    const administrator = await serviceOf(page);
    const account = (await administrator.get({ id: served })).request!.accountId;
    const codeOf = (call: Promise<unknown>) =>
      call.then(
        () => undefined,
        (error: unknown) => ConnectError.from(error).code,
      );
    expect(await codeOf(service.list({ filter: { accountId: account } }))).toBe(Code.PermissionDenied);
    for (const id of [served, refused]) {
      expect((await administrator.get({ id })).request?.accountId).toBe(account);
      expect(await codeOf(service.get({ id }))).toBe(Code.InvalidArgument);
    }
    controller.abort();
    expect(await watching).toBe(Code.Canceled);
    expect(bob.complaints).toEqual([]);
  });
});

async function createKeyOf(of: Page): Promise<string> {
  await of.goto(`${site.product.url}/keys`);
  return createKey(of, "bob's");
}
