import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fillIn, MODELS, readClients } from "../../web/keys/snippets.ts";
import { setUp, type Site, startSite, type Visit } from "./support/site.ts";

const run = promisify(execFile);
/** Root of the repository, with the installed clients and the contract. */
const root = join(import.meta.dirname, "../..");

/** Clients that must not be missing. */
const REQUIRED =
  "Claude Code,Codex,Gemini CLI,opencode,Qwen Code,aider,Cursor,Continue,Open WebUI,LibreChat,LangChain,AI SDK,Agents SDK,pydantic-ai,LlamaIndex,curl";

let site: Site;
let visit: Visit;

beforeAll(async () => {
  site = await startSite();
  visit = await site.visit("/");
  await setUp(visit.page);
  await openNewKey();
});
afterAll(() => site?.close());

/** Creates a key, whose dialog stays open. */
async function openNewKey(): Promise<void> {
  await visit.page.getByRole("button", { name: "Create key" }).first().click();
  await visit.page.getByLabel("Name", { exact: true }).fill("pasted");
  await visit.page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
  await visit.page.getByTestId("secret").waitFor();
}

/** Shows the settings of a client. */
async function choose(client: string): Promise<void> {
  await visit.page.getByLabel("Set up a client").selectOption(client);
}

/** Returns the text that the first copy button of a client puts into the clipboard. */
async function copy(client: string): Promise<string> {
  await choose(client);
  await visit.page
    .getByRole("button", { name: `Copy the code for ${client}` })
    .first()
    .click();
  await visit.page.getByText("Copied").waitFor();
  return visit.page.evaluate<string>("navigator.clipboard.readText()");
}

/** Runs a program without the developer's environment. Returns its output. */
async function print(command: string, ...args: string[]): Promise<string> {
  const { stdout } = await run(command, args, { cwd: root, env: { PATH: process.env["PATH"] }, timeout: 30_000 });
  return stdout;
}

const inShell = (text: string): Promise<string> => print("bash", "-c", text);
const inNode = (text: string): Promise<string> => print(process.execPath, "--input-type=module", "--eval", text);

describe("the settings of a client", () => {
  it("are those of docs/clients.md, with the key and this address", async () => {
    const { page } = visit;
    const secret = (await page.getByTestId("secret").textContent()) ?? "";
    const options = await page.getByLabel("Set up a client").locator("option").allTextContents();
    expect(options).toEqual(expect.arrayContaining(REQUIRED.split(",")));
    const use = { origin: site.product.url, secret, models: MODELS, model: "" };
    const clients = readClients(fillIn(readFileSync(join(root, "docs/clients.md"), "utf8"), use));
    expect(options).toEqual(clients.map(({ name }) => name));
    for (const { name, steps, notes } of clients) {
      await choose(name);
      const settings = page.getByTestId("client");
      expect(await settings.locator("pre").allTextContents()).toEqual(steps.map(({ code }) => code));
      expect(await settings.locator("p").allTextContents()).toEqual(
        [...steps.map(({ where }) => where), ...notes].map((text) => text.replaceAll("`", "")),
      );
      const shown = (await settings.textContent()) ?? "";
      expect(shown, name).toContain(secret);
      expect(shown, name).toContain(new URL(site.product.url).host);
      expect(shown, name).not.toMatch(/YOUR_KEY|:8080/);
    }
  });

  it("are chosen and copied with the keyboard, and the choice is remembered", async () => {
    const { page } = visit;
    const select = page.getByLabel("Set up a client");
    await choose("Claude Code");
    await select.focus();
    await page.keyboard.press("ArrowDown");
    await expect.poll(() => select.inputValue()).toBe("Codex");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.getByText("Copied").waitFor();
    expect(await page.evaluate<string>("navigator.clipboard.readText()")).toContain("[model_providers.parley]");
    await page.getByRole("button", { name: "I have saved it" }).click();
    await openNewKey();
    expect(await select.inputValue()).toBe("Codex");
  });

  it.each([320, 400, 1280])("fit a width of %i px", async (width) => {
    const { page } = visit;
    const before = page.viewportSize()!;
    await page.setViewportSize({ width, height: 800 });
    for (const name of await page.getByLabel("Set up a client").locator("option").allTextContents()) {
      await choose(name);
      const wider = await page.evaluate<string[]>(`[...document.querySelectorAll("[role=dialog], [role=dialog] *")]
        .filter((each) => each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).display !== "inline")
        .map((each) => each.outerHTML.slice(0, 100))`);
      expect(wider, name).toEqual([]);
    }
    await page.setViewportSize(before);
  });
});

describe("copied settings", () => {
  it("work in a shell with curl", async () => {
    expect(JSON.parse(await inShell(await copy("curl")))).toMatchObject({ object: "chat.completion" });
  });

  it("work in a shell with buf curl", async () => {
    const answer = JSON.parse(await inShell(await copy("buf curl")));
    expect(answer.completion ?? answer).toHaveProperty("choices");
  });

  it.each(["OpenAI SDK", "AI SDK", "LangChain"])("work in Node: %s", async (name) => {
    const printed = await inNode(await copy(name));
    expect(printed).toContain("Hello!");
  });
});
