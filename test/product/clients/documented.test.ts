import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Product, startProduct } from "../../support/product.ts";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "../../..");
const PAGE = readFileSync(join(ROOT, "docs/clients.md"), "utf8");

/** Uses the three clients that the page makes. */
const PROGRAM = `
const question = "Tell me about tides";
const chat = await openai.chat.completions.create({ model: "alpha-sonnet-4.5", messages: [{ role: "user", content: question }] });
const response = await openai.responses.create({ model: "alpha-sonnet-4.5", input: question });
const message = await anthropic.messages.create({ model: "beta-3-flash", max_tokens: 500, messages: [{ role: "user", content: question }] });
const content = await google.models.generateContent({ model: "alpha-sonnet-4.5", contents: question });
console.log(JSON.stringify([chat.choices[0].message.content, response.output_text, message.content[0].text, content.text]));
`;

let product: Product;
beforeAll(async () => {
  product = await startProduct();
});
afterAll(() => product.stop());

/** The code of this language after a heading, with the address of the running product. */
function codeOf(heading: string, language: string): string {
  const section = PAGE.slice(PAGE.indexOf(heading));
  const code = new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, "s").exec(section)?.[1];
  if (code === undefined) throw new Error(`${heading} has no ${language}`);
  return code.replaceAll("http://127.0.0.1:8080", product.url);
}

const environment = () => ({ ...process.env, PARLEY_KEY: product.firstKey });

describe("docs/clients.md", () => {
  it("has an official client for each format, in TypeScript", async () => {
    // Here, because it imports packages.
    const folder = mkdtempSync(join(ROOT, "test/product/clients/documented-"));
    try {
      const file = join(folder, "program.mts");
      writeFileSync(file, codeOf("### OpenAI, Anthropic, Google", "ts") + PROGRAM);
      const { stdout } = await run(process.execPath, ["--no-warnings", file], { env: environment() });
      const answers = JSON.parse(stdout) as string[];
      expect(answers).toHaveLength(4);
      for (const answer of answers) expect(answer).toContain("Tell me about tides");
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("has commands for curl that are answered in each format", async () => {
    const commands = codeOf("## curl", "sh").replaceAll("curl ", "curl -sS -w '\\n' ");
    const { stdout } = await run("bash", ["-ec", commands], { env: environment() });
    const answers = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as object);
    expect(answers).toMatchObject([
      { object: "chat.completion" },
      { object: "response" },
      { type: "message" },
      { candidates: [{}] },
    ]);
  });
});
