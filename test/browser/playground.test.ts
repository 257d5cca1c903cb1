import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { KeyService } from "../../gen/parley/console/v1/key_pb.js";
import { KeyCapability } from "../../gen/parley/v1/key_pb.js";
import { Role } from "../../gen/parley/v1/message_pb.js";
import { PlaygroundService } from "../../gen/parley/console/v1/playground_pb.js";
import { RequestService } from "../../gen/parley/console/v1/request_pb.js";
import { PASSWORD, setUp, type Site, startSite, type Visit } from "./support/site.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");

/** Configuration with a model whose provider is unreachable. */
const GONE = {
  sign_up: "open",
  simulator: { enabled: true },
  providers: {
    gone: { dialect: "openai", base_url: "http://127.0.0.1:9/v1", allow_private: true },
  },
  models: { "gone-1": { provider: "gone", upstream_model: "gone-1", context_window: 9_000, max_output_tokens: 900 } },
};

/** A PNG of one pixel. */
const PIXEL = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

let site: Site;
let visit: Visit;
let page: Page;

beforeAll(async () => {
  site = await startSite({ config: GONE });
  visit = await site.visit("/");
  ({ page } = visit);
  await setUp(page);
});
afterAll(() => site?.close());
beforeEach(async () => {
  await page.goto(`${site.product.url}/playground`);
  await message().waitFor();
  await page.getByLabel("Key", { exact: true }).selectOption({ label: "first key" });
  await choose("Model", "alpha-opus-4.5");
});

const message = () => page.getByLabel("Message", { exact: true });
const answer = () => page.locator("[data-role=assistant]").last();
const stop = () => page.getByRole("button", { name: "Stop" });
const choose = (label: string, value: string) => page.getByLabel(label, { exact: true }).selectOption(value);
const open = (fold: string) => page.locator("summary", { hasText: fold }).click();

async function ask(text: string): Promise<void> {
  await message().fill(text);
  await page.keyboard.press("Control+Enter");
}

async function complete(): Promise<void> {
  await page.getByText("Completed", { exact: true }).waitFor();
}

/** Returns clients of the services with the session of a browser. */
async function servicesOf(of: Page) {
  const cookies = await of.context().cookies();
  const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join("; ");
  const transport = createConnectTransport({
    baseUrl: site.product.url,
    httpVersion: "1.1",
    interceptors: [
      (next) => (request) => {
        request.header.set("cookie", cookie);
        return next(request);
      },
    ],
  });
  return {
    keys: createClient(KeyService, transport),
    log: createClient(RequestService, transport),
    playground: createClient(PlaygroundService, transport),
  };
}

describe("an answer", () => {
  it("appears incrementally with its rate, and then with its facts and cost", async () => {
    await ask("Say 300 words about the sea");
    const lengths = new Set<number>();
    await expect
      .poll(async () => {
        if (await stop().isVisible()) lengths.add((await answer().innerText()).length);
        return lengths.size;
      })
      .toBeGreaterThan(3);
    expect(await page.getByText("Elapsed").isVisible()).toBe(true);
    await complete();
    const facts = await page.getByRole("tabpanel").innerText();
    for (const fact of ["stop", "alpha-opus-4.5", "$0.0"]) expect(facts).toContain(fact);
    expect(await answer().innerText()).toContain("simulated prose");
    // The log has scrolled along, and the focus has not moved.
    const isAtEnd =
      "(log => log.scrollHeight - log.scrollTop - log.clientHeight < 2)(document.querySelector('[role=log]'))";
    await expect.poll(() => page.evaluate(isAtEnd)).toBe(true);
    expect(await page.evaluate("document.activeElement.tagName")).toBe("TEXTAREA");
  });

  it("does not scroll while the user reads further up", async () => {
    const log = "document.querySelector('[role=log]')";
    await ask("Say 3000 words");
    await expect.poll(() => page.evaluate<number>(`${log}.scrollTop`)).toBeGreaterThan(100);
    await page.evaluate(`${log}.scrollTop = 0`);
    const height = await page.evaluate<number>(`${log}.scrollHeight`);
    await expect.poll(() => page.evaluate<number>(`${log}.scrollHeight`)).toBeGreaterThan(height + 100);
    expect(await page.evaluate(`${log}.scrollTop`)).toBe(0);
    await stop().click();
  });

  it("has a list of all events with their times", async () => {
    await ask("Hello");
    await complete();
    await page.getByRole("tab", { name: "Events" }).click();
    const lines = (await page.getByRole("region", { name: "Events" }).innerText()).split("\n");
    const events = lines.map((line) => /^ *(\d+) ms {2}(\{.*\})$/.exec(line));
    const times = events.map((event) => Number(event?.[1]));
    expect(times).toEqual(times.toSorted((one, other) => one - other));
    const chunks = events.map((event) => Object.keys(JSON.parse(event?.[2] ?? "{}"))[0]);
    expect(chunks[0]).toBe("start");
    expect(chunks.at(-1)).toBe("report");
  });

  it("is cancelled at the provider when stopped, and recorded as cancelled", async () => {
    await ask("Say 5000 words");
    await expect.poll(async () => (await answer().innerText()).length).toBeGreaterThan(50);
    await stop().click();
    await page.getByText("You stopped this response.").waitFor();
    const { log } = await servicesOf(page);
    await expect
      .poll(async () => (await log.list({})).requests[0])
      .toMatchObject({ outcome: "cancelled", entrance: "console", partial: true });
    // The partial answer stays in the conversation.
    expect((await answer().innerText()).length).toBeGreaterThan(50);
  });

  it("continues while other pages are open, and is lost after a reload", async () => {
    await ask("Say 100 words");
    await answer().waitFor();
    await page.getByRole("link", { name: "Models" }).click();
    await page.getByRole("heading", { name: "Models", exact: true }).waitFor();
    await page.getByRole("link", { name: "Playground" }).click();
    await complete();
    expect(await answer().innerText()).toContain("simulated prose");
    expect(await page.evaluate("JSON.stringify([localStorage, sessionStorage])")).not.toContain("words");
    await page.reload();
    await page.getByText("Send a message to start.").waitFor();
  });

  it("shows reasoning collapsed", async () => {
    await open("Parameters");
    await choose("Reasoning effort", "high");
    await ask("Think");
    await complete();
    const reasoning = answer().locator("details");
    expect(await reasoning.getAttribute("open")).toBeNull();
    await reasoning.locator("summary").click();
    expect(await reasoning.innerText()).toContain("The last message reads");
  });

  it("shows an image", async () => {
    await choose("Model", "beta-3-pro-image-preview");
    await page.getByLabel("Generate images").check();
    await ask("Draw a picture of a cat");
    await complete();
    const picture = answer().getByRole("img");
    expect(
      await picture.evaluate((shown) => (shown as unknown as { naturalWidth: number }).naturalWidth),
    ).toBeGreaterThan(0);
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      answer().getByRole("button", { name: "Download" }).click(),
    ]);
    expect(download.suggestedFilename()).toBe("image-1.png");
  });

  it("is escaped", async () => {
    const hostile = `<img src=x onerror="window.hurt=1"><script>window.hurt=1</script>`;
    await ask(hostile);
    await complete();
    expect(await answer().innerText()).toContain(hostile);
    expect(await page.evaluate("window.hurt")).toBeUndefined();
  });
});

describe("a playground request", () => {
  it("shows validation errors at the parameter, and works after the correction", async () => {
    await open("Parameters");
    for (const [label, text, what] of [
      ["Temperature", "3", "Must be between 0 and 2."],
      ["Top p", "-1", "Must be between 0 and 1."],
      ["Max tokens", "0", "Must be between 1 and 64000."],
      ["Seed", "half", "Must be a whole number."],
      ["Presence penalty", "9", "Must be between -2 and 2."],
    ] as const) {
      const field = page.getByLabel(label, { exact: true });
      await field.fill(text);
      await ask("Hello");
      await page.getByText(what, { exact: true }).waitFor();
      expect(await field.getAttribute("aria-invalid")).toBe("true");
      await field.fill("");
      const button = page.getByRole("button", { name: "New conversation" });
      if (await button.isVisible()) await button.click();
      await message().fill("");
    }
    await page.getByLabel("Max tokens", { exact: true }).fill("5");
    await ask("Say 100 words");
    await complete();
    await page.getByText("Truncated: max tokens reached").waitFor();
  });

  it("supports tools, with results entered by hand", async () => {
    await open("Tools");
    const tools = page.getByLabel("Functions (JSON)");
    for (const [text, what] of [
      ["[{", "Is not JSON"],
      ["{}", "Must be a list"],
      ['[{"type":"function","function":{}}]', "[0].function.name: is required"],
      ['[{"type":"function","function":{"name":"not a name"}}]', "must be 1 to 64 letters"],
    ] as const) {
      await tools.fill(text);
      await ask("What is the weather in Paris?");
      await page.getByText(what).first().waitFor();
      expect(await tools.getAttribute("aria-invalid")).toBe("true");
    }
    await tools.fill("");
    await page.getByRole("button", { name: "Insert example" }).click();
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByLabel("Result of get_weather").fill('{"sky":"clear"}');
    expect(await answer().innerText()).toContain("city");
    await page.getByRole("button", { name: "Send result" }).click();
    await expect.poll(() => page.locator("[data-role]").count()).toBe(4);
    await complete();
    expect(await page.locator("[data-role=tool]").innerText()).toContain("clear");
    expect(await answer().innerText()).not.toBe("");
  });

  it("accepts images by file picker or paste, but no other files", async () => {
    await page.getByLabel("Pictures").setInputFiles([
      { name: "pixel.png", mimeType: "image/png", buffer: PIXEL },
      { name: "notes.png", mimeType: "image/png", buffer: Buffer.from("no picture") },
    ]);
    await page.getByText("notes.png is not a PNG, JPEG, GIF or WebP image.").waitFor();
    const bytes = JSON.stringify([...PIXEL]);
    await page.evaluate(`(() => {
      const area = document.querySelector("textarea[rows='3']");
      const clipboardData = new DataTransfer();
      clipboardData.items.add(new File([new Uint8Array(${bytes})], "pasted.png", { type: "image/png" }));
      area.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
    })()`);
    await page.getByText("pasted.png").waitFor();
    await ask("What is this?");
    await complete();
    expect(await answer().innerText()).toContain("Picture 2 of 2");
  });

  it("falls back to the next model, and shows both attempts", async () => {
    await choose("Model", "gone-1");
    await open("Fallback models");
    await choose("Add a model", "alpha-haiku-4.5");
    await ask("Hello");
    await complete();
    expect(await answer().innerText()).toContain("alpha-haiku-4.5");
    await page.getByRole("tab", { name: "Attempts" }).click();
    const attempts = await page.getByRole("tabpanel").getByRole("listitem").allInnerTexts();
    expect(attempts[0]).toContain("Provider unavailable");
    expect(attempts.at(-1)).toContain("Success");
  });

  it("can be edited, removed and repeated", async () => {
    await ask("One");
    await complete();
    await page.locator("[data-role=user]").getByRole("button", { name: "Edit" }).click();
    await page.getByLabel("Text").fill("Another");
    await page.getByRole("button", { name: "Save" }).click();
    await answer().getByRole("button", { name: "Remove" }).click();
    await page.getByRole("button", { name: "Run" }).click();
    await complete();
    expect(await answer().innerText()).toContain('You wrote: "Another"');
    const before = await page.getByRole("tabpanel").getByRole("link").innerText();
    await answer().getByRole("button", { name: "Retry" }).click();
    await expect.poll(() => page.getByRole("tabpanel").getByRole("link").allInnerTexts()).not.toContain(before);
    await complete();
    expect(await page.locator("[data-role]").count()).toBe(2);
  });

  it("gives the same answer when its code is pasted into a shell", async () => {
    const { keys } = await servicesOf(page);
    const { secret } = await keys.create({ name: "pasted" });
    await open("Parameters");
    await page.getByLabel("Temperature", { exact: true }).fill("0.5");
    const quoted = `It's "quoted" $HOME \`id\` \\ and\nREQUEST\non lines`;
    await page.getByLabel("Pictures").setInputFiles({ name: "p.png", mimeType: "image/png", buffer: PIXEL });
    await ask(quoted);
    await complete();
    await answer().getByRole("button", { name: "Copy the answer" }).click();
    const said = await page.evaluate<string>("navigator.clipboard.readText()");
    await page.getByRole("tab", { name: "Request" }).click();
    const env = { PATH: process.env["PATH"], PARLEY_API_KEY: secret };
    const copy = async (name: string): Promise<string> => {
      await choose("Language", name);
      await page.getByRole("button", { name: `Copy the request as ${name}` }).click();
      await page.getByRole("tabpanel", { name: "Request" }).getByText("Copied").waitFor();
      return page.evaluate<string>("navigator.clipboard.readText()");
    };
    const curl = await copy("curl");
    expect(curl).not.toContain("sk_parley_");
    const { stdout } = await run("bash", ["-c", curl], { env, timeout: 30_000 });
    const events = stdout.split("\n").filter((line) => line.startsWith("data: {"));
    const chunks = events.map((line) => JSON.parse(line.slice("data: ".length)));
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("")).toBe(said);
    const node = ["--input-type=module", "--eval", await copy("Node")];
    expect((await run(process.execPath, node, { cwd: root, env, timeout: 30_000 })).stdout.trim()).toBe(said);
    expect(await copy("Python")).toContain('api_key=os.environ["PARLEY_API_KEY"]');
  });
});

describe("the key", () => {
  it("determines the available models and capabilities", async () => {
    const { keys } = await servicesOf(page);
    await keys.create({ name: "only haiku", models: { ids: ["alpha-haiku-4.5"] } });
    const pictures = { capabilities: [KeyCapability.IMAGES] };
    await keys.create({ name: "only pictures", capabilities: pictures });
    await page.reload();
    await page.getByLabel("Key", { exact: true }).selectOption({ label: "only haiku" });
    expect(await page.getByLabel("Model", { exact: true }).getByRole("option").allInnerTexts()).toEqual([
      "alpha-haiku-4.5",
    ]);
    await page.getByLabel("Key", { exact: true }).selectOption({ label: "only pictures" });
    await ask("Hello");
    const alert = page.getByRole("alert");
    await alert.getByText('This API key lacks the capability "chat".').waitFor();
    expect(await alert.getByRole("link").getAttribute("href")).toMatch(/^\/requests\/req_/);
  });

  it("is chosen for the model in a link, or a notice explains the replacement", async () => {
    const { keys } = await servicesOf(page);
    await keys.create({ name: "newest, only haiku", models: { ids: ["alpha-haiku-4.5"] } });
    const model = page.getByLabel("Model", { exact: true });
    const key = page.getByLabel("Key", { exact: true });
    await page.goto(`${site.product.url}/models`);
    await page.getByRole("link", { name: "Try it: beta-3-pro-image-preview" }).click();
    await expect.poll(() => model.inputValue()).toBe("beta-3-pro-image-preview");
    await key.selectOption({ label: "newest, only haiku" });
    await page.getByText("may not use beta-3-pro-image-preview. Using alpha-haiku-4.5 instead.").waitFor();
    await key.selectOption({ label: "first key" });
    await expect.poll(() => model.inputValue()).toBe("beta-3-pro-image-preview");
    await page.goto(`${site.product.url}/playground?model=doesnotexist`);
    await page.getByText("Model doesnotexist does not exist. Using ").waitFor();
  });

  it("is rate limited, with the time until the next request", async () => {
    const { keys } = await servicesOf(page);
    await keys.create({ name: "once a minute", limits: { requestsPerMinute: 1n } });
    await page.reload();
    await page.getByLabel("Key", { exact: true }).selectOption({ label: "once a minute" });
    await ask("Hello");
    await complete();
    await ask("Hello again");
    await page.getByRole("alert").waitFor();
    expect(await page.getByRole("alert").innerText()).toMatch(/1 request per minute.*Try again in \d+/);
  });

  it("of another account is rejected, also for administrators", async () => {
    const visitor = await site.visit("/sign-up");
    await visitor.page.getByLabel("E-mail").fill("bob@example.com");
    await visitor.page.getByLabel("Password").fill(PASSWORD);
    await visitor.page.getByRole("button", { name: "Create" }).click();
    await visitor.page.getByRole("heading", { name: "Overview", exact: true }).waitFor();
    await visitor.page.goto(`${site.product.url}/playground`);
    await visitor.page.getByText("No active key").waitFor();
    const [ada, bob] = [await servicesOf(page), await servicesOf(visitor.page)];
    const theirs = (await ada.keys.list({})).keys[0]!.id;
    const own = (await bob.keys.create({ name: "bob's" })).key!.id;
    const messages = [{ role: Role.USER, parts: [{ kind: { case: "text" as const, value: "Hello" } }] }];
    const stream = async (of: typeof ada, keyId: string): Promise<Code | undefined> => {
      try {
        for await (const _ of of.playground.stream({ keyId, completion: { model: "alpha-haiku-4.5", messages } }));
        return undefined;
      } catch (reason) {
        return ConnectError.from(reason).code;
      }
    };
    expect(await stream(bob, theirs)).toBe(Code.InvalidArgument);
    // Administrators can see Bob's keys, but not use them.
    expect(await stream(ada, own)).toBe(Code.InvalidArgument);
    expect(await stream(bob, own)).toBeUndefined();
    await page.reload();
    await message().waitFor();
    expect(await page.getByLabel("Key", { exact: true }).innerText()).not.toContain("bob's");
  });
});

describe("keyboard navigation", () => {
  it("can send, stop, send again and open the events", async () => {
    await message().focus();
    await page.keyboard.type("Say 3000 words");
    await page.keyboard.press("Control+Enter");
    await answer().waitFor();
    await page.keyboard.press("Tab");
    expect(await page.evaluate("document.activeElement.textContent")).toBe("Stop");
    await page.keyboard.press("Enter");
    await page.getByText("You stopped this response.").waitFor();
    await page.keyboard.press("Shift+Tab");
    await page.keyboard.type("Go on");
    await page.keyboard.press("Control+Enter");
    await complete();
    for (let presses = 0; presses < 10; presses += 1) {
      await page.keyboard.press("Tab");
      if ((await page.evaluate("document.activeElement.textContent")) === "Response") break;
    }
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    await page.getByRole("region", { name: "Events" }).waitFor();
  });
});

describe("sign-out in another tab", () => {
  it("cancels a streaming answer, and clears the playground", async () => {
    const other = await page.context().newPage();
    await other.goto(`${site.product.url}/keys`);
    await ask("Say 9000 words");
    await answer().waitFor();
    await other.getByRole("button", { name: "Sign out" }).click();
    await other.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.getByLabel("E-mail").fill("ada@example.com");
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("Send a message to start.").waitFor();
    const { log } = await servicesOf(page);
    const [latest] = (await log.list({})).requests;
    expect(latest).toMatchObject({ outcome: "cancelled", entrance: "console", partial: true });
    expect(visit.complaints).toEqual([]);
  });
});
