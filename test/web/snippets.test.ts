import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { fillIn, MODELS, readClients } from "../../web/keys/snippets.ts";

const PAGE = readFileSync(join(import.meta.dirname, "../../docs/clients.md"), "utf8");
const CLIENTS = readClients(PAGE);
const USE = { origin: "https://parley.example", secret: "prl_secret", models: ["team/$&"], model: "team/$&" };

const EXAMPLE = `# Clients

| not | code |

## Agents

### First

In \`a.toml\`:

\`\`\`toml
[a]

# not a heading
\`\`\`

Or in a shell:

\`\`\`sh
first --key YOUR_KEY
\`\`\`

A note.

Another note.

### Without code

A paragraph.

## Tools

### Second

In a shell:

\`\`\`sh
second
\`\`\`
`;

describe("the sections of docs/clients.md", () => {
  it("are read with the place of each code and the notes", () => {
    expect(readClients(EXAMPLE)).toEqual([
      {
        group: "Agents",
        name: "First",
        steps: [
          { where: "In `a.toml`:", code: "[a]\n\n# not a heading" },
          { where: "Or in a shell:", code: "first --key YOUR_KEY" },
        ],
        notes: ["A note.", "Another note."],
      },
      { group: "Tools", name: "Second", steps: [{ where: "In a shell:", code: "second" }], notes: [] },
    ]);
  });

  it.each(CLIENTS)("say of $name where each code goes, in words that the dashboard can show", ({ steps, notes }) => {
    for (const { where } of steps) expect(where).toMatch(/^[^|].*:$/);
    const texts = [...steps.map(({ where }) => where), ...notes].join("\n");
    // The dashboard shows code between backticks; no links, tables or lists.
    expect(texts).not.toMatch(/\]\(|^[|*-]|\*\*/m);
    expect(texts.split("`").length % 2).toBe(1);
    expect(new Set(steps.map(({ where }) => where)).size).toBe(steps.length);
  });

  it("have one name each", () => {
    const names = CLIENTS.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });

  it("contain all code of the page", () => {
    expect(CLIENTS.flatMap(({ steps }) => steps)).toHaveLength(PAGE.match(/^```\w+$/gm)!.length);
  });
});

describe("the values of a key", () => {
  it("replace all placeholders", () => {
    const filled = JSON.stringify(readClients(fillIn(PAGE, USE)));
    expect(filled).not.toMatch(/YOUR_|127\.0\.0\.1|localhost|(alpha|beta|gamma)-/);
    expect(filled).toContain("parley/team/$&");
  });

  it("keep the models of the page that the key may use", () => {
    const filled = fillIn(PAGE, { ...USE, models: MODELS, model: "alpha-haiku-4.5" });
    for (const model of MODELS) expect(filled.split(model)).toHaveLength(PAGE.split(model).length);
  });
});
