import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { describe, expect, it } from "vitest";
import { fileSchema } from "../src/config/schema.ts";
import { FAILURE_ADVICE } from "../src/inbound/failure-advice.ts";
import { FAILURE_TABLE, type FailureRow, retryAfterMs } from "../src/inbound/failure-table.ts";
import { Failure, type FailureCode } from "../src/core/failure.ts";
import { type Reference, readReferences, titlesOf } from "./support/test-references.ts";

const root = join(import.meta.dirname, "..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");

const GRPC_NAMES: Readonly<Record<number, string>> = {
  1: "CANCELLED",
  3: "INVALID_ARGUMENT",
  4: "DEADLINE_EXCEEDED",
  5: "NOT_FOUND",
  7: "PERMISSION_DENIED",
  8: "RESOURCE_EXHAUSTED",
  10: "ABORTED",
  12: "UNIMPLEMENTED",
  13: "INTERNAL",
  14: "UNAVAILABLE",
  16: "UNAUTHENTICATED",
};

describe("docs/errors.md", () => {
  const rows = new Map(
    [...read("docs/errors.md").matchAll(/^\| `(\w+)` \|(.*)\|$/gm)].map(([, code = "", rest = ""]) => [
      code,
      rest.split("|").map((cell) => cell.trim()),
    ]),
  );

  it("has a row for every failure, and no other", () => {
    expect([...rows.keys()].toSorted()).toEqual(Object.keys(FAILURE_TABLE).toSorted());
  });

  it.each(Object.entries(FAILURE_TABLE))("says of %s what the code does", (code, row) => {
    const [http, type, errorCode, grpc] = rows.get(code)!;
    expect(grpc).toBe(GRPC_NAMES[row.grpc]);
    if (code === "cancelled") return;
    expect([http, type]).toEqual([String(row.http), row.type]);
    const absent = code === "unauthenticated" ? "*absent*" : "–";
    expect(errorCode).toBe(row.code ?? absent);
  });

  it.each(Object.entries(FAILURE_ADVICE))("says of %s what the dashboard says", (code, { means, todo }) => {
    expect(rows.get(code)?.at(-1)).toBe(`${means} ${todo}`);
  });
});

describe("the advice about failures", () => {
  it("is there for every failure, and for no other", () => {
    expect(Object.keys(FAILURE_ADVICE)).toEqual(Object.keys(FAILURE_TABLE));
  });

  it("says to wait where clients get a retry-after, and where that helps", () => {
    const isToWait = ([code, row]: [string, FailureRow]): boolean =>
      !row.final && code !== "deadline_exceeded" && retryAfterMs(new Failure(code as FailureCode, "no")) !== undefined;
    const told = Object.entries<FailureRow>(FAILURE_TABLE).filter(isToWait);
    const advised = Object.entries(FAILURE_ADVICE).filter(([, { retry }]) => retry === "after a wait");
    expect(advised.map(([code]) => code)).toEqual(told.map(([code]) => code));
  });
});

describe("docs/configuration.md", () => {
  const text = read("docs/configuration.md");

  it.each(keysOf(z.toJSONSchema(fileSchema, { io: "input" })))("explains %s", (key) => {
    expect(text).toMatch(new RegExp(String.raw`\b${key}\b`));
  });

  it("says of each section whether a reload applies it or it needs a restart", () => {
    const said = ["applied by SIGHUP", "need a restart"].flatMap((row) => {
      const [line = ""] = text.split(`| ${row}`)[1]!.split("\n");
      return Array.from(line.matchAll(/`([a-z_]+)`/g), ([, name = ""]) => name);
    });
    expect(said.filter((name) => name !== "burst_seconds" && name !== "tls").toSorted()).toEqual(
      Object.keys(fileSchema.shape).toSorted(),
    );
  });
});

describe("docs/operations/faults.md", () => {
  const rows = [...read("docs/operations/faults.md").matchAll(/^\| (?!what fails|---)(.*?) \|.*\| (.*) \|$/gm)].map(
    ([, what = "", proof = ""]) => [what, readReferences(proof)] as const,
  );

  it("has rows about providers, stores, the process and callers", () => {
    expect(rows.length).toBeGreaterThan(30);
  });

  it.each(rows)("says which tests show it, and they exist: %s", (_, references) => {
    expect(references).not.toEqual([]);
    const isTitle = (reference: Reference): boolean =>
      "file" in reference && titlesOf(reference.file).some((title) => title.includes(reference.words ?? "\0"));
    expect(references.filter((reference) => !isTitle(reference))).toEqual([]);
  });
});

describe("docs/operations/security.md", () => {
  const section = /^## What is promised$([\s\S]*?)^## /m.exec(read("docs/operations/security.md"))?.[1] ?? "";
  const rows = [...section.matchAll(/^\| (?!promise|---)(.*?) \| (.*) \|$/gm)].map(
    ([, what = "", proof = ""]) => [what, readReferences(proof)] as const,
  );

  it("promises something", () => {
    expect(rows.length).toBeGreaterThan(10);
  });

  it.each(rows)("says which tests hold it, and they exist: %s", (_, references) => {
    expect(references).not.toEqual([]);
    const isTitle = (reference: Reference): boolean =>
      "file" in reference && titlesOf(reference.file).some((title) => title.includes(reference.words ?? "\0"));
    expect(references.filter((reference) => !isTitle(reference))).toEqual([]);
  });
});

describe("docs/operations", () => {
  const pages = ["README.md", "faults.md", "security.md", "releases.md", "troubleshooting.md", "capacity.md"]
    .map((name) => read(`docs/operations/${name}`))
    .join("\n");
  const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts"))
    .map((path) => read(join("src", path)))
    .join("\n");

  it("names metrics that there are", () => {
    const named = [...new Set(pages.match(/\bparley_\w+/g))];
    expect(named.length).toBeGreaterThan(10);
    expect(named.filter((name) => !sources.includes(`"${name}"`))).toEqual([]);
  });

  it("quotes lines of the log that there are", () => {
    const quoted = [...new Set([...pages.matchAll(/"msg":"([^"]+)"/g)].map(([, text = ""]) => text))];
    expect(quoted.length).toBeGreaterThan(5);
    expect(quoted.filter((text) => !sources.includes(`"${text}"`))).toEqual([]);
  });
});

describe("docs/operations/troubleshooting.md", () => {
  const page = read("docs/operations/troubleshooting.md");
  const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts"))
    .map((path) => read(join("src", path)).replaceAll(String.raw`\"`, '"'))
    .join("\n");
  // Lines of the log, in the page's other form, have a test of their own.
  const commands = /^("msg":|curl|npx|parley|ss|df|du|cat|ulimit|runuser|docker|proxy_buffering)/;
  const setting = /^["*\w.]+: [^ ]/;
  const ofOthers = new Set([
    "Connection refused",
    "wrong version number",
    "packet length too long",
    "Empty reply from server",
    "socket hang up",
    "Received HTTP/0.9 when not allowed",
    "Protocol error",
    "Error in the HTTP2 framing layer",
    "alert no application protocol",
    "Connection dropped",
    "Socket closed",
  ]);
  const text = page.replaceAll(/```.*?```/gs, "");
  const quoted = [...text.matchAll(/`([^`]+)`/g)].map(([, span = ""]) => span).filter((span) => span.includes(" "));
  const messages = new Set(quoted.filter((span) => !commands.test(span) && !setting.test(span) && !ofOthers.has(span)));

  it("quotes messages", () => {
    expect(messages.size).toBeGreaterThan(60);
  });

  it.each([...messages])("quotes what Parley says: %s", (message) => {
    const pieces = message.split("…").flatMap((piece) => piece.trim() || []);
    expect(pieces.filter((piece) => !sources.includes(piece))).toEqual([]);
  });
});

describe("the documentation", () => {
  const inDocs = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".md"))
    .map((path) => join("docs", path));
  const files = ["README.md", "CHANGELOG.md", "SECURITY.md", ...inDocs];

  it.each(files)("%s has no link that leads nowhere", (file) => {
    const targets = [...read(file).matchAll(/\]\((?!https?:|#)([^)#]+)[^)]*\)/g)].map(([, target = ""]) => target);
    expect(targets.filter((target) => !existsSync(join(root, dirname(file), target)))).toEqual([]);
  });
});

/** The names of all properties in a JSON schema, without those that users choose. */
function keysOf(schema: unknown): string[] {
  if (typeof schema !== "object" || schema === null) return [];
  const { properties = {}, ...rest } = schema as { properties?: Record<string, unknown> };
  const own = Object.entries(properties).flatMap(([key, value]) => [key, ...keysOf(value)]);
  return [...new Set([...own, ...Object.values(rest).flatMap(keysOf)])];
}

describe("the programs of README.md", () => {
  const programs = [...read("README.md").matchAll(/<details><summary>(\w+)<\/summary>\n\n(```.*?```)\n/gs)].map(
    ([, language = "", program = ""]) => ({ language: language.toLowerCase(), program }),
  );

  it.each(programs)("are those of the client packages, whose tests run them: $language", ({ language, program }) => {
    const [, first] = /## First program\n.*?(```\w+\n.*?```)/s.exec(read(`clients/${language}/README.md`)) ?? [];
    expect(first).toBe(program);
  });

  it("are one for each package", () => {
    const packages = readdirSync(join(root, "clients"), { withFileTypes: true }).filter((each) => each.isDirectory());
    expect(programs.map(({ language }) => language).toSorted()).toEqual(packages.map(({ name }) => name).toSorted());
  });

  it("of Rust is the example that its test runs", () => {
    expect(read("clients/rust/README.md")).toContain(`\`\`\`rust\n${read("clients/rust/examples/tides.rs")}\`\`\``);
  });
});
