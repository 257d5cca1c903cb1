import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { parseSync } from "rolldown/utils";
import { describe, expect, it } from "vitest";

/** Which folders of `src/` a folder may import, besides itself. This table is the authority on the architecture. */
const allowedImports: Readonly<Record<string, readonly string[]>> = {
  core: ["gen"],
  router: ["core", "gen"],
  // What is known of networks, for those who check an address before it is used and when it is.
  net: [],
  providers: ["core", "gen", "net"],
  access: ["core"],
  limits: ["core"],
  ledger: ["core"],
  // Their port types, and core's that they are made of.
  store: ["access", "ledger", "limits", "core"],
  edge: ["core", "access", "gen"],
  grpc: ["core", "edge", "gen"],
  front: ["core", "edge", "gen"],
  console: ["access", "ledger", "edge", "core", "gen"],
  simulator: [],
  telemetry: [],
  config: ["net"],
  // The composition root: joins all parts into a running gateway. `main.ts` only reads the command line.
  gateway: ["*"],
  cli: ["*"],
  "main.ts": ["*"],
};

/** Packages that only some folders may import: a prefix of the name, and the folders. */
const confinedPackages: readonly (readonly [prefix: string, folders: readonly string[]])[] = [
  ["@grpc/", ["grpc"]],
  ["@connectrpc/", ["front", "console", "edge/http", "edge/connect-error.ts"]],
  // The console only types what the HTTP front hands to it: it is mounted there, and listens nowhere. `edge/http` is what
  // the two share. gRPC guards its connections and streams of HTTP/2, which the library has made.
  [
    "node:http",
    [
      "front",
      "console",
      "edge/http",
      "simulator",
      "telemetry",
      "grpc/connection-guard.ts",
      "grpc/core-channels.ts",
      "grpc/keepalive.ts",
      "grpc/stream-guard.ts",
    ],
  ],
];

/** Programs for people to copy, whose own environment they mean. */
const EXAMPLES = ["console/web/docs/examples.ts", "console/web/playground/programs.ts"];

/** What only some folders or files may say outside comments: what it is called, how to find it, and the places. */
const confinedWords: readonly (readonly [name: string, pattern: RegExp, places: readonly string[]])[] = [
  ["process.env", /\bprocess\.env\b|\benv\b[^;]*(=\s*process\b|from\s*"node:process")/, ["config", ...EXAMPLES]],
  ["anthropic", /anthropic/i, ["providers/anthropic", "simulator", "config", "gateway/catalogue.ts"]],
];

interface SourceFile {
  /** Relative to `src/`, with forward slashes: `providers/gemini/stream.ts`. */
  readonly path: string;
  /** The first part of the path: a folder, or a file such as `main.ts`. */
  readonly layer: string;
  /** The source with every comment blanked out. */
  readonly code: string;
  /** Module names as written, of every import, export and `import()`, types included. */
  readonly imports: readonly string[];
}

const root = join(import.meta.dirname, "..");

describe("the architecture", () => {
  const files = readSources(join(root, "src"));

  it("has sources to look at", () => {
    expect(files.length).toBeGreaterThan(0);
    expect(files.flatMap((file) => file.imports).length).toBeGreaterThan(0);
  });

  it("has no folder in src that the table does not know", () => {
    const unknown = new Set(files.map((file) => file.layer).filter((layer) => !(layer in allowedImports)));
    expect([...unknown]).toEqual([]);
  });

  it("lets a folder import only what the table allows", () => {
    expect(files.flatMap(findForbiddenImports)).toEqual([]);
  });

  it("has no two folders that need each other", () => {
    expect(findCycles(allowedImports)).toEqual([]);
  });

  it("keeps the dialects apart", () => {
    expect(files.flatMap(findSiblingDialects)).toEqual([]);
  });

  it("lets the pages import nothing of the server, and the server nothing of the pages but their paths", () => {
    const crossing = files.flatMap((file) => {
      const isPage = file.path.startsWith("console/web/");
      const targets = file.imports.filter((name) => name.startsWith(".")).map((name) => resolveImport(file, name));
      return targets
        .filter((target) => !target.startsWith("../gen/") && target !== "console/web/paths.ts")
        .filter((target) => target.startsWith("console/web/") !== isPage)
        .map((target) => `${file.path} imports ${target}`);
    });
    expect(crossing).toEqual([]);
  });

  it.each(confinedPackages)("imports %s only where it belongs", (prefix, folders) => {
    const others = files.filter((file) => !isIn(file, [...folders, "gateway", "cli"]));
    const found = others.filter((file) => file.imports.some((name) => name.startsWith(prefix)));
    expect(found.map((file) => file.path)).toEqual([]);
  });

  it.each(confinedWords)("says %s only where it belongs", (_name, pattern, places) => {
    const others = files.filter((file) => !isIn(file, places));
    expect(others.filter((file) => pattern.test(file.code)).map((file) => file.path)).toEqual([]);
  });
});

describe("reading a source file", () => {
  const source = [
    'import type { A } from "../core/a.ts";',
    'export { b } from "./b.ts";',
    'export * from "node:http";',
    'const c = await import("../edge/c.ts");',
    'type D = import("../access/d.ts").D;',
    '// import "../limits/e.ts"; anthropic',
    'const text = "// not a comment";',
  ].join("\n");
  const file = readSource("router/example.ts", source);

  it("finds imports of every kind, but none in comments", () => {
    expect(file.imports.toSorted()).toEqual(
      ["../access/d.ts", "../core/a.ts", "../edge/c.ts", "./b.ts", "node:http"].toSorted(),
    );
  });

  it("blanks out comments and leaves strings alone", () => {
    expect(file.code).not.toContain("anthropic");
    expect(file.code).toContain("// not a comment");
  });

  it("tells what the layer may not import", () => {
    expect(findForbiddenImports(file)).toEqual([
      "router/example.ts imports ../edge/c.ts",
      "router/example.ts imports ../access/d.ts",
    ]);
  });

  it("tells when a dialect imports its sibling, and lets it import what they share", () => {
    const imports = 'import "../gemini/stream.ts"; import "../sse.ts"; import "./request.ts";';
    const dialect = readSource("providers/openai/provider.ts", imports);
    expect(findSiblingDialects(dialect)).toEqual(["providers/openai/provider.ts imports ../gemini/stream.ts"]);
  });

  it("tells a cycle", () => {
    expect(findCycles({ a: ["b"], b: ["c"], c: ["a"], d: ["a", "*"] })).not.toEqual([]);
    expect(findCycles({ a: ["b", "c"], b: ["c"], c: [] })).toEqual([]);
  });
});

function readSources(folder: string): SourceFile[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => readSource(relative(folder, path).replaceAll(sep, "/"), readFileSync(path, "utf8")));
}

function readSource(path: string, source: string): SourceFile {
  const { module, comments, errors } = parseSync(path, source);
  if (errors.length > 0) throw new Error(`${path} cannot be parsed: ${errors[0]?.message}`);
  let code = source;
  for (const { start, end } of comments) code = code.slice(0, start) + " ".repeat(end - start) + code.slice(end);
  const exported = module.staticExports.flatMap((statement) => statement.entries.map((entry) => entry.moduleRequest));
  const imported = [...module.staticImports.map((statement) => statement.moduleRequest), ...exported];
  // Also those in types, which the parser does not list: import("./x.ts").X
  const called = code.matchAll(/\bimport\s*\(\s*(["'`])(.+?)\1/g);
  const names = [...imported.flatMap((request) => request?.value ?? []), ...[...called].map((match) => match[2] ?? "")];
  return { path, layer: path.split("/", 1)[0] ?? "", code, imports: [...new Set(names)] };
}

/** What a relative import means, seen from `src/`: `core/failure.ts`, or `../gen/…` for what is outside. */
function resolveImport(file: SourceFile, name: string): string {
  return join(dirname(file.path), name).replaceAll(sep, "/");
}

function findForbiddenImports(file: SourceFile): string[] {
  const allowed = allowedImports[file.layer] ?? [];
  return file.imports
    .filter((name) => name.startsWith("."))
    .filter((name) => {
      const target = resolveImport(file, name).replace(/^\.\.\/gen\//, "gen/");
      const layer = target.split("/", 1)[0] ?? "";
      return layer !== file.layer && !allowed.includes(layer) && !allowed.includes("*");
    })
    .map((name) => `${file.path} imports ${name}`);
}

function findSiblingDialects(file: SourceFile): string[] {
  const dialect = /^providers\/([^/]+)\//.exec(file.path)?.[1];
  if (dialect === undefined) return [];
  return file.imports
    .filter((name) => name.startsWith("."))
    .filter((name) => {
      const target = /^providers\/([^/]+)\//.exec(resolveImport(file, name))?.[1];
      return target !== undefined && target !== dialect;
    })
    .map((name) => `${file.path} imports ${name}`);
}

/** Paths through the table that come back to where they began. `*` is left out: nothing may import those folders. */
function findCycles(table: Readonly<Record<string, readonly string[]>>): string[] {
  const cycles: string[] = [];
  const visit = (layer: string, path: readonly string[]): void => {
    if (path.includes(layer)) cycles.push([...path, layer].join(" → "));
    else for (const next of table[layer] ?? []) visit(next, [...path, layer]);
  };
  for (const layer of Object.keys(table)) visit(layer, []);
  return cycles;
}

function isIn(file: SourceFile, places: readonly string[]): boolean {
  return places.some((place) => file.path === place || file.path.startsWith(`${place}/`));
}
