import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { findBarriersEverywhere } from "./support/accessibility.ts";
import { createKey, setUp, type Site, startSite, type Visit } from "./support/site.ts";

const run = promisify(execFile);

/** An answer that the simulator does not give. */
const MARKDOWN = "x\n\n```js\nconst a = 1;\n```\n\n<img src=x onerror='window.hurt=1'>\n\n- one\n- two";

/** A provider of the OpenAI dialect whose answer is always the same. */
const author = createServer((request, response) => {
  request.resume();
  response.writeHead(200, { "content-type": "text/event-stream" });
  const chunk = { id: "1", object: "chat.completion.chunk", created: 1, model: "author" };
  for (const part of MARKDOWN.match(/[^]{1,9}/g) ?? [])
    response.write(`data: ${JSON.stringify({ ...chunk, choices: [{ index: 0, delta: { content: part } }] })}\n\n`);
  const finish = { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: "stop" }] };
  response.end(`data: ${JSON.stringify(finish)}\n\ndata: [DONE]\n\n`);
});

const local = (port: number) => ({ dialect: "openai", base_url: `http://127.0.0.1:${port}/v1`, allow_private: true });
const modelOf = (provider: string) => ({
  provider,
  upstream_model: provider,
  context_window: 9_000,
  max_output_tokens: 900,
});

let site: Site;
let visit: Visit;
let page: Page;
let secret: string;

beforeAll(async () => {
  author.listen(0, "127.0.0.1");
  await once(author, "listening");
  const { port } = author.address() as AddressInfo;
  site = await startSite({
    config: {
      simulator: { enabled: true },
      providers: { gone: local(9), author: local(port) },
      models: { "gone-1": modelOf("gone"), "author-1": modelOf("author") },
    },
  });
  visit = await site.visit("/");
  ({ page } = visit);
  await setUp(page);
  secret = await createKey(page, "shell");
});
afterAll(async () => {
  await site?.close();
  author.close();
});

const open = async (search: string): Promise<void> => {
  await page.goto(`${site.product.url}/playground${search}`);
  await page.getByLabel("Message", { exact: true }).waitFor();
};
const column = (model: string) => page.getByRole("article", { name: model, exact: true });
const ask = async (text: string): Promise<void> => {
  await page.getByLabel("Message", { exact: true }).fill(text);
  await page.keyboard.press("Control+Enter");
};
const search = () => new URL(page.url()).search;
const fold = (name: string) => page.locator("summary", { hasText: name }).click();

describe("a comparison", () => {
  beforeEach(() => open("?model=alpha-haiku-4.5&compare=beta-3-flash&compare=gone-1"));

  it("sends one prompt to all models, each with its figures or its error", async () => {
    await ask("Say 40 words about lighthouses");
    for (const model of ["alpha-haiku-4.5", "beta-3-flash"]) {
      await column(model).getByText("Cost").waitFor();
      const text = await column(model).innerText();
      expect(text).toContain("Say 40 words about lighthouses");
      expect(text).toMatch(/Time to first token\s+[\d.]+ m?s/);
      expect(text).toMatch(/Elapsed\s+[\d.]+ m?s/);
      expect(text).toMatch(/\$0\.\d+/);
    }
    await column("gone-1").getByRole("alert").waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    // Beside each other.
    const [one, other] = [await column("alpha-haiku-4.5").boundingBox(), await column("beta-3-flash").boundingBox()];
    expect(one?.y).toBe(other?.y);
    await page.getByLabel("Details of the answer of").selectOption("beta-3-flash");
    await page.getByRole("tabpanel").getByText("beta-3-flash").first().waitFor();
  });

  it("streams at the same time, and stops all at once", async () => {
    await ask("Say 5000 words");
    const lengthOf = async (model: string): Promise<number> =>
      (await column(model).locator("[data-role=assistant]").innerText()).length;
    await expect.poll(() => lengthOf("alpha-haiku-4.5")).toBeGreaterThan(50);
    await expect.poll(() => lengthOf("beta-3-flash")).toBeGreaterThan(50);
    await page.getByRole("button", { name: "Stop all" }).click();
    await expect.poll(() => page.getByText("You stopped this response.").count()).toBe(2);
  });

  it("goes on with each model's own answers, and then with one model", async () => {
    await ask("First");
    await column("beta-3-flash").getByText("Cost").waitFor();
    await column("alpha-haiku-4.5").getByText("Cost").waitFor();
    await ask("Second");
    await column("beta-3-flash").getByText('You wrote: "Second".').waitFor();
    await expect.poll(() => column("beta-3-flash").locator("[data-role]").count()).toBe(4);
    await column("beta-3-flash").getByText("Cost").waitFor();
    await column("alpha-haiku-4.5").getByText("Cost").waitFor();
    await column("beta-3-flash").getByRole("button", { name: "Continue" }).click();
    await page.getByRole("heading", { name: "Conversation", exact: true }).waitFor();
    expect(await page.locator("[data-role]").count()).toBe(4);
    expect(search()).toBe("?model=beta-3-flash");
    await ask("Third");
    await expect.poll(() => page.locator("[data-role]").count()).toBe(6);
  });

  it("is chosen in the settings, with at most four models, and kept in the address", async () => {
    await page.getByLabel("Compare with", { exact: true }).selectOption("alpha-opus-4.5");
    await column("alpha-opus-4.5").waitFor();
    expect(search()).toBe("?model=alpha-haiku-4.5&compare=beta-3-flash&compare=gone-1&compare=alpha-opus-4.5");
    expect(await page.getByLabel("Compare with", { exact: true }).count()).toBe(0);
    await page.getByRole("link", { name: "Models" }).click();
    await page.getByRole("heading", { name: "Models", exact: true }).waitFor();
    await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Playground" }).click();
    await column("alpha-opus-4.5").waitFor();
    expect(search()).toContain("compare=alpha-opus-4.5");
    for (const model of ["gone-1", "beta-3-flash", "alpha-opus-4.5"])
      await page.getByRole("button", { name: `Remove ${model} from the comparison` }).click();
    await page.getByRole("heading", { name: "Conversation", exact: true }).waitFor();
    expect(search()).toBe("?model=alpha-haiku-4.5");
  });
});

describe("the address", () => {
  it("keeps the model that was asked for, also when it does not exist", async () => {
    await open("?model=doesnotexist");
    await page.getByText("Model doesnotexist does not exist. Using ").waitFor();
    expect(search()).toBe("?model=doesnotexist");
  });
});

describe("the request", () => {
  it.each([
    ["Chat Completions", /"delta":\{[^}]*"content"/],
    ["Responses", /"type":"response\.output_text\.delta"/],
    ["Anthropic Messages", /"type":"text_delta"/],
    ["Gemini", /"candidates":\[/],
  ])("runs in a shell in the format %s", async (format, sign) => {
    await open("?model=alpha-haiku-4.5");
    await fold("System message");
    await page.getByLabel("Instructions for the model").fill('It\'s "brief" $HOME');
    await ask("Hello `there`");
    await page.getByText("Completed", { exact: true }).waitFor();
    await page.getByRole("tab", { name: "Request" }).click();
    await page.getByLabel("Format", { exact: true }).selectOption(format);
    await page.getByRole("button", { name: "Copy the request as curl" }).click();
    const code = await page.evaluate<string>("navigator.clipboard.readText()");
    const env = { PATH: process.env["PATH"], PARLEY_API_KEY: secret };
    const { stdout } = await run("bash", ["-c", code], { env, timeout: 30_000 });
    expect(stdout).toMatch(sign);
    expect(stdout.replaceAll("\\", "")).toContain("there");
    expect(await findBarriersEverywhere(page)).toEqual([]);
  });
});

describe("simulated results of tools", () => {
  it("are sent by themselves", async () => {
    await open("?model=alpha-haiku-4.5");
    await fold("Tools");
    await page.getByRole("button", { name: "Insert example" }).click();
    const results = page.getByLabel("Simulated results (JSON)");
    await results.fill("[]");
    await ask("What is the weather in Paris?");
    await page.getByText("Must be an object of results by function name.").waitFor();
    await results.fill('{"get_weather":{"sky":"clear"}}');
    await page.keyboard.press("Tab");
    await page.getByRole("button", { name: "Send" }).click();
    await expect.poll(() => page.locator("[data-role]").count()).toBe(4);
    await page.getByText("Completed", { exact: true }).waitFor();
    expect(await page.locator("[data-role=tool]").innerText()).toContain('{"sky":"clear"}');
    expect(await findBarriersEverywhere(page)).toEqual([]);
  });
});

describe("presets", () => {
  it("keep settings in the browser, and not the conversation", async () => {
    await open("?model=beta-3-flash");
    await fold("System message");
    await page.getByLabel("Instructions for the model").fill("Answer in rhymes.");
    await fold("Parameters");
    await page.getByLabel("Temperature", { exact: true }).fill("1.5");
    await ask("A secret question");
    await page.getByText("Completed", { exact: true }).waitFor();
    await fold("Presets");
    await page.getByRole("button", { name: "Save preset" }).click();
    await page.getByText("Enter a name.").waitFor();
    await page.getByLabel("Name of a preset").fill("rhymes");
    await page.getByRole("button", { name: "Save preset" }).click();
    await page.getByText("Preset rhymes saved.").waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    expect(await page.evaluate("JSON.stringify([localStorage, sessionStorage])")).not.toContain("secret question");
    await open("?model=alpha-haiku-4.5");
    await fold("Presets");
    await page.getByRole("button", { name: "rhymes", exact: true }).click();
    await expect.poll(search).toBe("?model=beta-3-flash");
    await fold("System message");
    expect(await page.getByLabel("Instructions for the model").inputValue()).toBe("Answer in rhymes.");
    await page.getByRole("button", { name: "Remove the preset rhymes" }).click();
    expect(await page.evaluate("JSON.stringify(localStorage)")).not.toContain("rhymes");
  });
});

describe("an answer with markdown", () => {
  it("has code to copy, and runs nothing", async () => {
    await open("?model=author-1");
    await ask("Hello");
    await page.getByText("Completed", { exact: true }).waitFor();
    const answer = page.locator("[data-role=assistant]");
    await answer.getByRole("button", { name: "Copy the js code" }).click();
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe("const a = 1;");
    expect(await answer.locator("img").count()).toBe(0);
    expect(await answer.getByRole("listitem").allInnerTexts()).toEqual(["one", "two"]);
    await answer.getByRole("button", { name: "Copy the answer" }).click();
    await expect.poll(() => page.evaluate("navigator.clipboard.readText()")).toBe(MARKDOWN);
    expect(await answer.innerText()).toContain("<img src=x onerror='window.hurt=1'>");
    expect(await page.evaluate("window.hurt")).toBeUndefined();
    expect(await findBarriersEverywhere(page)).toEqual([]);
  });
});

describe("the cost while typing", () => {
  it("is that of the prompt, over all compared models", async () => {
    await open("?model=alpha-haiku-4.5");
    await page.getByLabel("Message", { exact: true }).fill("word ".repeat(4_000));
    const costOf = async (): Promise<number> =>
      Number(/\$([\d.]+) before the answer/.exec(await page.getByText("before the answer").innerText())?.[1]);
    const one = await costOf();
    expect(one).toBeGreaterThan(0);
    await page.getByText("~5,000 prompt tokens").waitFor();
    await page.getByLabel("Compare with", { exact: true }).selectOption("alpha-opus-4.5");
    await expect.poll(costOf).toBeGreaterThan(one);
    expect(visit.complaints).toEqual([]);
  });
});
