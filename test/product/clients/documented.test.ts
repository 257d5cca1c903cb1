import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fillIn, MODELS, readClients } from "../../../web/keys/snippets.ts";
import { type Product, startProduct } from "../../support/product.ts";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "../../..");
const PAGE = readFileSync(join(ROOT, "docs/clients.md"), "utf8");

let product: Product;
/** Here, because programs in it import packages. */
let folder: string;

beforeAll(async () => {
  product = await startProduct();
  folder = mkdtempSync(join(ROOT, "test/product/clients/documented-"));
  // Stands in for `@openai/agents`, which exports both and installs much more.
  const agents = join(folder, "node_modules/@openai/agents");
  mkdirSync(agents, { recursive: true });
  writeFileSync(join(agents, "package.json"), JSON.stringify({ type: "module", exports: "./index.js" }));
  writeFileSync(
    join(agents, "index.js"),
    'export * from "@openai/agents-core";\nexport * from "@openai/agents-openai";\n',
  );
});
afterAll(async () => {
  await product?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Codes of a client, with the address and the key of the running product. */
function codesOf(name: string): string[] {
  const use = { origin: product.url, secret: product.firstKey, models: MODELS, model: MODELS[0]! };
  return readClients(fillIn(PAGE, use))
    .filter((client) => client.name === name)
    .flatMap(({ steps }) => steps.map(({ code }) => code));
}

/** Without the developer's environment. */
const options = () => ({ cwd: folder, env: { PATH: process.env["PATH"] } });

describe("docs/clients.md", () => {
  it.each(["OpenAI SDK", "Anthropic SDK", "Google Gen AI SDK", "LangChain", "AI SDK", "Agents SDK"])(
    "has a program in JavaScript that runs: %s",
    async (name) => {
      const file = join(folder, "hello.mjs");
      writeFileSync(file, codesOf(name)[0]!);
      const { stdout } = await run(process.execPath, ["--no-warnings", file], options());
      expect(stdout).toContain("Hello!");
    },
  );

  it("has commands for curl that are answered in each format", async () => {
    const codes = codesOf("curl").map((code) => code.replace(/^curl /, "curl -sS "));
    const answers = await Promise.all(codes.map((code) => run("bash", ["-ec", code], options())));
    expect(answers.map(({ stdout }) => JSON.parse(stdout) as object)).toMatchObject([
      { object: "chat.completion" },
      { object: "response" },
      { type: "message" },
      { candidates: [{}] },
    ]);
  });

  it("has the variables that OpenAI's client reads", async () => {
    const file = join(folder, "models.mjs");
    writeFileSync(
      file,
      'import OpenAI from "openai";\nconst { data } = await new OpenAI().models.list();\nconsole.log(data.length);\n',
    );
    const code = `${codesOf("Environment")[0]}\nexec ${process.execPath} ${file}`;
    const { stdout } = await run("bash", ["-ec", code], options());
    expect(Number(stdout)).toBeGreaterThan(0);
  });
});
