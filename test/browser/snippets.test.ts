import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { setUp, type Site, startSite, type Visit } from "./support/site.ts";

const run = promisify(execFile);
/** Root of the repository, with the installed clients and the contract. */
const root = join(import.meta.dirname, "../..");

let site: Site;
let visit: Visit;

beforeAll(async () => {
  site = await startSite();
  visit = await site.visit("/");
  await setUp(visit.page);
  await visit.page.getByRole("button", { name: "Create key" }).click();
  await visit.page.getByLabel("Name", { exact: true }).fill("pasted");
  await visit.page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
  await visit.page.getByTestId("secret").waitFor();
});
afterAll(() => site?.close());

/** Returns the text that the copy button of an example puts into the clipboard. */
async function copy(name: string): Promise<string> {
  await visit.page.getByRole("tab", { name, exact: true }).click();
  await visit.page.getByRole("button", { name: `Copy the ${name} example` }).click();
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

describe("a copied code example", () => {
  it("works in a shell with curl", async () => {
    expect(JSON.parse(await inShell(await copy("curl")))).toMatchObject({ object: "chat.completion" });
  });

  it("works in a shell with buf curl", async () => {
    const answer = JSON.parse(await inShell(await copy("buf curl")));
    expect(answer.completion ?? answer).toHaveProperty("choices");
  });

  it("works as the environment of a client", async () => {
    const program = `import OpenAI from "openai";
      const { data } = await new OpenAI().models.list();
      console.log(data.length);`;
    const shell = `${await copy("Environment")}\nexec node --input-type=module --eval '${program}'`;
    expect(Number(await inShell(shell))).toBeGreaterThan(0);
  });

  it.each(["Node", "AI SDK", "LangChain"])("works in Node: %s", async (name) => {
    const printed = await inNode(await copy(name));
    expect(printed.trim()).not.toMatch(/^(undefined|null|)$/);
  });

  it("contains the secret of the key", async () => {
    const secret = (await visit.page.getByTestId("secret").textContent()) ?? "";
    for (const name of ["Python", "Go"]) expect(await copy(name)).toContain(secret);
  });
});
