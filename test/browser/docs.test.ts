import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CompletionRequestSchema, CompletionService } from "../../gen/parley/v1/completion_pb.js";
import { KeyService } from "../../gen/parley/v1/key_pb.js";
import { ModelService } from "../../gen/parley/v1/model_pb.js";
import { FAILURE_TABLE } from "../../src/inbound/failure-table.ts";
import { chatRequest } from "../../src/formats/openai-chat/schema.ts";
import { findBarriers, SIZES } from "./support/accessibility.ts";
import { setUp, type Site, startSite, type Visit } from "./support/site.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");

const THEMES = ["light", "dark"] as const;

let site: Site;
let visit: Visit;

beforeAll(async () => {
  site = await startSite();
  visit = await site.visit("/docs");
  await visit.page.getByRole("heading", { name: "API reference" }).waitFor();
});
afterAll(() => site?.close());

const idsOf = (): Promise<string[]> =>
  visit.page.evaluate("[...document.querySelectorAll('main [id]')].map(({ id }) => id)");

/** Whether what has this ID is where somebody looks. */
const isShown = (page: Visit["page"], id: string): Promise<boolean> =>
  page.evaluate(`(() => {
    const { top, bottom } = document.getElementById(${JSON.stringify(id)}).getBoundingClientRect();
    return bottom > 0 && top >= 0 && top < innerHeight;
  })()`);

describe("the API reference", () => {
  it("is there for somebody without an account, and leads to the dashboard", async () => {
    const { page, complaints } = await site.visit("/docs");
    await page.getByRole("link", { name: "Dashboard" }).click();
    await page.getByRole("heading", { name: "Set up Parley" }).waitFor();
    await page.getByRole("link", { name: "API reference" }).click();
    await page.getByRole("heading", { name: "API reference" }).waitFor();
    expect(await page.title()).toBe("API reference · Parley");
    expect(complaints).toEqual([]);
  });

  it("has every field of a completion's request, over HTTP and gRPC", async () => {
    const ids = new Set(await idsOf());
    const grpc = CompletionRequestSchema.fields.map(({ name }) => `grpc-CompletionRequest.${name}`);
    const http = Object.keys(chatRequest.shape).map((name) => `http-ChatCompletionRequest.${name}`);
    expect([...grpc, ...http].filter((id) => !ids.has(id))).toEqual([]);
  });

  it("has every method of the contract", async () => {
    const ids = new Set(await idsOf());
    const methods = [CompletionService, ModelService, KeyService].flatMap((service) =>
      service.methods.map(({ name }) => `grpc-${service.name}.${name}`),
    );
    expect(methods.filter((id) => !ids.has(id))).toEqual([]);
  });

  it("has every failure, with what to do about it", async () => {
    const list = visit.page.getByRole("list", { name: "Failure codes" });
    for (const [code, { http }] of Object.entries(FAILURE_TABLE)) {
      const text = (await list.locator(`#error-${code}`).textContent()) ?? "";
      expect(text).toContain("What to do:");
      expect(text).toContain(code === "cancelled" ? "HTTPno answer" : `HTTP${http}`);
    }
  });

  it("has no link within itself that leads nowhere, and no place twice", async () => {
    const ids = await idsOf();
    expect(new Set(ids).size).toBe(ids.length);
    const targets: string[] = await visit.page.evaluate(
      "[...document.querySelectorAll('a[href^=\"#\"]')].map((link) => link.hash.slice(1))",
    );
    expect(targets.length).toBeGreaterThan(300);
    expect(targets.filter((target) => !ids.includes(target) && target !== "main")).toEqual([]);
  });

  it("has only downloads that there are", async () => {
    const links: string[] = await visit.page.evaluate(
      "[...document.querySelectorAll('main a[href^=\"/\"]')].map((link) => link.getAttribute('href'))",
    );
    expect(links).toContain("/openapi.json");
    expect(links).toContain("/proto/parley.binpb");
    for (const link of links) expect((await fetch(site.product.url + link)).status, link).toBe(200);
  });

  it.each(["error-rate_limited", "http-ChatCompletionRequest.temperature", "grpc-Usage", "header-retry-after"])(
    "opens at %s when its address says so",
    async (id) => {
      const { page } = await site.visit(`/docs#${id}`);
      await page.locator(`[id="${id}"]:target`).waitFor();
      await expect.poll(() => isShown(page, id)).toBe(true);
    },
  );

  // One at a time: it is by far the longest page.
  it.each(SIZES.flatMap(([width, height]) => THEMES.map((theme) => ({ width, height, theme }))))(
    "has no barrier at $width pixels, $theme, with something found",
    { timeout: 120_000 },
    async ({ theme, ...size }) => {
      const { page } = visit;
      await page.setViewportSize(size);
      await page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
      await page.locator(`html[data-theme=${theme}]`).waitFor();
      await page.getByLabel("Search this page").fill("retry");
      await page.getByRole("list", { name: "Found" }).waitFor();
      expect(await findBarriers(page)).toEqual([]);
      expect(await page.evaluate("document.documentElement.scrollWidth > innerWidth")).toBe(false);
      await page.keyboard.press("Escape");
      await page.setViewportSize({ width: 1440, height: 900 });
    },
  );

  it("is found through by keyboard", async () => {
    const { page } = visit;
    await page.evaluate("document.activeElement.blur()");
    await page.keyboard.press("/");
    await page.keyboard.type("budget_sp");
    await page.getByRole("list", { name: "Found" }).getByRole("link", { name: "budget_spent" }).waitFor();
    await page.keyboard.press("Enter");
    await expect.poll(() => new URL(page.url()).hash).toBe("#error-budget_spent");
    await expect.poll(() => isShown(page, "error-budget_spent")).toBe(true);
    expect(await page.getByRole("list", { name: "Found" }).count()).toBe(0);
    await page.getByLabel("Search this page").fill("no such thing");
    await page.getByText("Nothing on this page is called so.").waitFor();
    await page.keyboard.press("Escape");
    expect(await page.getByLabel("Search this page").inputValue()).toBe("");
  });

  it("shows one side alone, until somebody goes to the other", async () => {
    const { page } = visit;
    await page.getByRole("radio", { name: "HTTP" }).check({ force: true });
    const temperature = page.locator(`[id="grpc-CompletionRequest.temperature"]`);
    await temperature.waitFor({ state: "hidden" });
    expect(await page.locator(`[id="http-ChatCompletionRequest.temperature"]`).isVisible()).toBe(true);
    await page.getByLabel("Search this page").fill("CompletionService/Stream");
    await page.getByRole("list", { name: "Found" }).getByRole("link", { name: "CompletionService/Stream" }).click();
    await temperature.waitFor();
    await expect.poll(() => isShown(page, "grpc-CompletionService.Stream")).toBe(true);
    expect(await page.getByRole("radio", { name: "Both" }).isChecked()).toBe(true);
  });

  it("is readable on paper, from either theme", async () => {
    const { page } = visit;
    await page.emulateMedia({ media: "print", colorScheme: "dark" });
    expect(await page.getByLabel("Search this page").isVisible()).toBe(false);
    expect(await page.evaluate("getComputedStyle(document.body).color")).toBe("rgb(28, 32, 34)");
    await page.emulateMedia({ media: "screen" });
  });
});

describe("an example of the reference, with a key in the environment", () => {
  /** What the button beside it puts into the clipboard. */
  async function copy(about: string, name: string): Promise<string> {
    const { page } = visit;
    await page
      .getByRole("tablist", { name: `Examples: ${about}` })
      .getByRole("tab", { name, exact: true })
      .click();
    const button = page.getByRole("button", { name: `Copy the ${name} example: ${about}`, exact: true });
    await button.click();
    await button.getByText("Copied").waitFor();
    return page.evaluate<string>("navigator.clipboard.readText()");
  }

  async function print(cwd: string, ...[command = "", ...args]: string[]): Promise<string> {
    const env = { PATH: process.env["PATH"], PARLEY_API_KEY: site.product.firstKey };
    const { stdout } = await run(command, args, { cwd, env, timeout: 30_000 });
    return stdout;
  }

  const inShell = (text: string): Promise<string> => print(site.product.home, "bash", "-c", text);

  it("never has one itself", async () => {
    const text = (await visit.page.locator("main").textContent()) ?? "";
    expect(text.match(/sk_\w+/g)?.filter((found) => found !== "sk_parley_") ?? []).toEqual([]);
  });

  it("creates a completion with curl", async () => {
    expect(JSON.parse(await inShell(await copy("create a completion", "curl")))).toHaveProperty("choices");
  });

  it("streams one with curl", async () => {
    expect(await inShell(await copy("stream a completion", "curl"))).toMatch(/"usage":\{[^]*data: \[DONE\]\n\n$/);
  });

  it.each([
    ["name a fallback", "choices"],
    ["make a picture", "choices"],
    ["list the models", "data"],
  ])("works with curl to %s", async (about, field) => {
    expect(JSON.parse(await inShell(await copy(about, "curl")))).toHaveProperty(field);
  });

  it.each([
    ["create a completion", "choices"],
    ["stream a completion", "[DONE]"],
  ])("works in Node to %s", async (about) => {
    const printed = await print(root, process.execPath, "--input-type=module", "--eval", await copy(about, "Node"));
    expect(printed.trim()).not.toMatch(/^(undefined|null|)$/);
  });

  it.each([
    ["create a completion", "choices"],
    ["stream a completion", "report"],
    ["list the models", "models"],
    ["get the key of the call", "capabilities"],
  ])("works with buf curl over both protocols to %s", async (about, field) => {
    expect(await inShell(await copy(about, "buf curl"))).toContain(`"${field}"`);
    // gRPC has a port of its own, which this product was not given.
    const overGrpc = (await copy(about, "gRPC")).replace(":50051", `:${site.product.grpcPort}`);
    expect(await inShell(overGrpc)).toContain(`"${field}"`);
  });
});

describe("the reference for somebody who is signed in", () => {
  it("is at the end of the navigation", async () => {
    const { page, complaints } = await site.visit("/");
    await setUp(page);
    await page.getByRole("link", { name: "API reference" }).click();
    await page.getByRole("heading", { name: "API reference" }).waitFor();
    await page.getByRole("link", { name: "Dashboard" }).click();
    await page.getByRole("heading", { name: "Keys", exact: true }).waitFor();
    expect(complaints).toEqual([]);
  });
});

it("the browser has nothing to complain about", () => {
  expect(visit.complaints).toEqual([]);
});
