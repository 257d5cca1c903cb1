import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { parseSync } from "rolldown/utils";
import { describe, expect, it } from "vitest";

/**
 * Which folders of `src/` a folder may import, besides itself. This table is the authority on the architecture. A folder
 * within a folder is a row of its own where it may import more, or less, than the rest.
 */
const allowedImports: Readonly<Record<string, readonly string[]>> = {
  // What is known of bytes, of networks and of the event loop; it knows nothing of completions.
  encoding: [],
  net: [],
  scheduling: [],
  // The program's own files, in a folder or in its executable.
  installation: [],
  core: ["encoding", "gen"],
  router: ["core", "gen"],
  providers: ["core", "encoding", "scheduling", "net", "gen"],
  access: ["core", "encoding", "net", "scheduling"],
  limits: ["core", "net"],
  ledger: ["core"],
  // Rules, channels and messages; the database is behind its ports.
  alerts: ["access", "core", "net", "scheduling"],
  // Their port types, and core's that they are made of.
  store: ["access", "alerts", "ledger", "limits", "core", "net", "installation"],
  admission: ["core", "scheduling"],
  // The order of a call, and what the ways in share.
  inbound: ["core", "access", "admission", "encoding", "scheduling", "net", "gen"],
  formats: ["core", "encoding", "inbound", "gen"],
  "inbound/http2": ["inbound", "core", "net"],
  "inbound/http": ["inbound", "inbound/http2", "formats", "core", "encoding", "net", "gen"],
  "inbound/grpc": ["inbound", "inbound/http2", "admission", "core", "net", "gen"],
  "inbound/dashboard": [
    "inbound",
    "inbound/http",
    "admission",
    "access",
    "alerts",
    "ledger",
    "router",
    "core",
    "encoding",
    "web",
    "gen",
    "scheduling",
  ],
  simulator: ["formats", "core", "encoding", "scheduling", "gen"],
  telemetry: ["encoding", "net"],
  config: ["encoding", "net", "installation"],
  // The composition root: joins all parts into a running gateway.
  gateway: [
    "access",
    "admission",
    "alerts",
    "config",
    "core",
    // A request on standard input, and the plan for it.
    "formats",
    "inbound",
    "inbound/dashboard",
    "inbound/grpc",
    "inbound/http",
    "installation",
    "ledger",
    "limits",
    "net",
    "providers",
    "router",
    "scheduling",
    "simulator",
    "store",
    "telemetry",
    "gen",
  ],
  workers: ["gateway", "access", "config", "core", "installation", "limits", "store", "telemetry"],
  cli: [
    "encoding",
    "installation",
    "workers",
    "gateway",
    "access",
    "alerts",
    "config",
    "core",
    "inbound/grpc",
    "ledger",
    "simulator",
    "store",
    "telemetry",
  ],
  "main.ts": ["cli", "config"],
};

/** Packages that only some folders may import: a prefix of the name, and the folders. */
const confinedPackages: readonly (readonly [prefix: string, folders: readonly string[]])[] = [
  ["@grpc/", ["inbound/grpc"]],
  ["@connectrpc/", ["inbound/http", "inbound/dashboard", "inbound/error-details.ts"]],
  // The dashboard only types what the HTTP server hands to it: it is mounted there, and listens nowhere. gRPC guards its
  // connections and streams of HTTP/2, which the library has made. Providers are called by HTTP/2 on its client.
  [
    "node:http",
    [
      "inbound/http",
      "inbound/http2",
      "inbound/dashboard",
      "inbound/grpc",
      "providers/transport",
      "simulator",
      "telemetry",
      "access/oidc/bounded-fetch.ts",
      "alerts/post.ts",
    ],
  ],
];

/** What only some folders or files may say outside comments: what it is called, how to find it, and the places. */
const confinedWords: readonly (readonly [name: string, pattern: RegExp, places: readonly string[]])[] = [
  ["process.env", /\bprocess\.env\b|\benv\b[^;]*(=\s*process\b|from\s*"node:process")/, ["config"]],
  [
    "anthropic",
    /anthropic/i,
    [
      // The names of the contract's `provider_options_json`.
      "core/provider-options.ts",
      "providers/anthropic",
      "formats/anthropic",
      "formats/formats.ts",
      "inbound/http/openapi/messages.ts",
      "simulator",
      "config",
      "gateway/catalogue.ts",
    ],
  ],
];

interface SourceFile {
  /** Relative to `src/`, with forward slashes: `providers/gemini/stream.ts`. */
  readonly path: string;
  /** The row of the table: a folder, a folder within it, or a file such as `main.ts`. */
  readonly layer: string;
  /** The source with every comment blanked out. */
  readonly code: string;
  /** Module names as written, of every import, export and `import()`, types included. */
  readonly imports: readonly string[];
}

const root = join(import.meta.dirname, "..");

describe("the architecture", () => {
  const files = readSources(join(root, "src"));

  it("has sources", () => {
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

  it("keeps the formats apart", () => {
    const FOLDER = /^formats\/([^/]+)\//;
    const found = files.flatMap(({ path, imports }) =>
      imports.filter((name) => {
        const [own, other] = [FOLDER.exec(path)?.[1], FOLDER.exec(join(dirname(path), name))?.[1]];
        return own !== undefined && other !== undefined && own !== other;
      }),
    );
    expect(found).toEqual([]);
  });

  it("lets the dashboard's app and the server share nothing but the contract, paths, advice, clients' settings, CSV and budgets", () => {
    const shared = new Set([
      "../src/core/budget-amounts.ts",
      "../src/encoding/csv.ts",
      "../src/inbound/failure-advice.ts",
      "../docs/clients.md?raw",
    ]);
    const app = readSources(join(root, "web")).flatMap((file) =>
      file.imports
        .filter((name) => name.startsWith("."))
        .map((name) => resolveImport(file, name))
        .filter((target) => target.startsWith("../") && !target.startsWith("../gen/"))
        .filter((target) => !shared.has(target))
        .map((target) => `web/${file.path} imports ${target}`),
    );
    const server = files.flatMap((file) =>
      file.imports
        .map((name) => (name.startsWith(".") ? resolveImport(file, name) : ""))
        .filter((target) => target.startsWith("../web/") && target !== "../web/paths.ts")
        .map((target) => `src/${file.path} imports ${target}`),
    );
    expect([...app, ...server]).toEqual([]);
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
    'const c = await import("../inbound/c.ts");',
    'type D = import("../access/d.ts").D;',
    '// import "../limits/e.ts"; anthropic',
    'const text = "// not a comment";',
  ].join("\n");
  const file = readSource("router/example.ts", source);

  it("finds imports of every kind, but none in comments", () => {
    expect(file.imports.toSorted()).toEqual(
      ["../access/d.ts", "../core/a.ts", "../inbound/c.ts", "./b.ts", "node:http"].toSorted(),
    );
  });

  it("blanks out comments and leaves strings alone", () => {
    expect(file.code).not.toContain("anthropic");
    expect(file.code).toContain("// not a comment");
  });

  it("reports what the layer may not import", () => {
    expect(findForbiddenImports(file)).toEqual([
      "router/example.ts imports ../inbound/c.ts",
      "router/example.ts imports ../access/d.ts",
    ]);
  });

  it("reports an import of a sibling by a dialect, and permits what they share", () => {
    const imports = 'import "../gemini/stream.ts"; import "../wire/sse.ts"; import "./request.ts";';
    const dialect = readSource("providers/openai/provider.ts", imports);
    expect(findSiblingDialects(dialect)).toEqual(["providers/openai/provider.ts imports ../gemini/stream.ts"]);
  });

  it("reports a cycle", () => {
    expect(findCycles({ a: ["b"], b: ["c"], c: ["a"], d: ["a"] })).not.toEqual([]);
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
  return { path, layer: layerOf(path), code, imports: [...new Set(names)] };
}

/** The row of the table that a path belongs to: of a folder within a folder if there is one. */
function layerOf(path: string): string {
  const [folder = "", within = ""] = path.split("/");
  return `${folder}/${within}` in allowedImports ? `${folder}/${within}` : folder;
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
      const layer = layerOf(resolveImport(file, name).replace(/^\.\.\/(gen|web)\//, "$1/"));
      return layer !== file.layer && !allowed.includes(layer);
    })
    .map((name) => `${file.path} imports ${name}`);
}

/** Folders beside those of the dialects. They import none of them: the dialects' names are confined words. */
const SHARED_BY_DIALECTS = new Set(["transport", "wire"]);

function findSiblingDialects(file: SourceFile): string[] {
  const dialect = /^providers\/([^/]+)\//.exec(file.path)?.[1];
  if (dialect === undefined || SHARED_BY_DIALECTS.has(dialect)) return [];
  return file.imports
    .filter((name) => name.startsWith("."))
    .filter((name) => {
      const target = /^providers\/([^/]+)\//.exec(resolveImport(file, name))?.[1];
      return target !== undefined && target !== dialect && !SHARED_BY_DIALECTS.has(target);
    })
    .map((name) => `${file.path} imports ${name}`);
}

/** Paths through the table that come back to where they began. */
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
