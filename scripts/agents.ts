// npm run test:agents -- [agent…]: unmodified coding agents of the npm registry (default: all of scripts/agents/agents.ts)
// against the product with its simulator, in each wire format that they speak. Each is installed in a temporary folder,
// and has one task: run a command that reads a file, and answer with its output. Needs the npm registry; an agent that
// cannot be installed is a failure.
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Agent, AGENTS, type FormatName, ROUTES, type Start } from "./agents/agents.ts";
import { type Finished, runProgram } from "./agents/processes.ts";
import { type Passed, startRecorder } from "./agents/recorder.ts";
import { type Product, startProduct } from "../test/support/product.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const INSTALL_LIMIT_MS = 300_000;
const NODE_LIMIT_MS = 10_000;
const AGENT_LIMIT_MS = 120_000;
const LOG_LIMIT_MS = 5_000;
/** The file that the command reads. */
const FILE = "tides.txt";
/** Lines of an agent's output that are shown when it fails. */
const SHOWN_LINES = 40;

const names = process.argv.slice(2);
const unknown = names.filter((name) => !Object.hasOwn(AGENTS, name));
if (unknown.length > 0) {
  console.error(`There is no agent ${unknown.join(", ")}. The agents are ${Object.keys(AGENTS).join(", ")}.`);
  process.exitCode = 2;
} else {
  const failures = await tryAgents(names.length > 0 ? names : Object.keys(AGENTS));
  if (failures > 0) {
    console.error(`\nThe coding agents failed: ${failures} of the above.`);
    process.exitCode = 1;
  }
}

/** Returns the number of failures. */
async function tryAgents(chosen: readonly string[]): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "parley-agents-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
  let failures = 0;
  for (const name of chosen) {
    const agent = AGENTS[name]!;
    const installed = join(folder, name);
    const isInstalled = await step(`${name} ${agent.version}, install`, () => install(agent, installed));
    if (!isInstalled) failures += 1;
    for (const format of isInstalled ? agent.formats : []) {
      const trial = { format, installed, folder: join(folder, `${name}-${format}`) };
      const passed = await step(`${name} ${agent.version}, ${format}`, () => tryAgent(agent, trial));
      if (!passed) failures += 1;
    }
    // They take hundreds of megabytes each.
    rmSync(installed, { recursive: true, force: true });
  }
  return failures;
}

async function step(name: string, action: () => Promise<string>): Promise<boolean> {
  const startedAt = performance.now();
  const seconds = (): string => `${((performance.now() - startedAt) / 1000).toFixed(1)} s`;
  try {
    const what = await action();
    console.log(`ok  ${name}${what} (${seconds()})`);
    return true;
  } catch (error) {
    console.error(`not ok  ${name} (${seconds()}): ${error instanceof Error ? error.message : String(error)}`);
    return false;
  }
}

/** Installs a package without the scripts of its dependencies, and then runs the one that it needs. */
async function install(agent: Agent, folder: string): Promise<string> {
  const { package: name, version, afterInstall } = agent;
  mkdirSync(folder);
  await requireNode(agent, folder);
  const options = { cwd: folder, env: process.env, limitMs: INSTALL_LIMIT_MS };
  const flags = ["--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  const installed = await runProgram("npm", ["install", ...flags, `${name}@${version}`], options);
  if (installed.ending !== "0") throw new Error(`npm cannot install ${name}@${version}.${show(installed)}`);
  if (afterInstall === undefined) return "";
  const cwd = join(folder, "node_modules", name);
  const set = await runProgram(process.execPath, [afterInstall], { ...options, cwd });
  if (set.ending !== "0") throw new Error(`${afterInstall} of ${name} failed.${show(set)}`);
  return "";
}

async function requireNode({ package: name, version, belowNode }: Agent, cwd: string): Promise<void> {
  if (belowNode === undefined) return;
  const options = { cwd, env: { PATH: findPath() }, limitMs: NODE_LIMIT_MS };
  const node = (await runProgram("node", ["--version"], options)).stdout.trim();
  if (Number(/^v(\d+)/.exec(node)?.[1]) < belowNode) return;
  throw new Error(`${name}@${version} needs a Node below ${belowNode} in the path, which has ${node || "none"}.`);
}

interface Trial {
  readonly format: FormatName;
  /** Where the agent is installed. */
  readonly installed: string;
  /** For its files. */
  readonly folder: string;
}

/** Gives an agent its task. Rejects with what is wrong and the agent's output. */
async function tryAgent(agent: Agent, { format, installed, folder }: Trial): Promise<string> {
  const product = await startProduct({
    config: { simulator: { enabled: true, tokens_per_second: 1_000_000, first_token_ms: 0 } },
  });
  const recorder = await startRecorder(product.url);
  try {
    // Only the command's output has it.
    const secret = `tide-${randomBytes(6).toString("hex")}`;
    const prompt = `Please call ${agent.call(`cat ${FILE}`)} and say what it returned.`;
    const start = agent.start({ format, url: recorder.url, apiKey: product.firstKey, prompt });
    const env = makeFolders(folder, start, secret);
    const program = join(installed, "node_modules/.bin", agent.program);
    const options = { cwd: join(folder, "work"), env, limitMs: AGENT_LIMIT_MS };
    const finished = await runProgram(program, start.args, options);
    const requests = recorder.take();
    const outcomes = await readOutcomes(product, 2);
    const problems = findProblems({ finished, format, outcomes, requests, secret });
    if (problems.length > 0) throw new Error(`${problems.join("; ")}.${show(finished, requests)}`);
    return `: ${outcomes.length} completions, a tool's result in one, an answer`;
  } finally {
    await recorder.close();
    await product.stop();
  }
}

/** Writes the agent's files, and returns its environment: of the developer's only the path. */
function makeFolders(folder: string, { env, homeFiles = {}, workFiles = {} }: Start, secret: string) {
  const files = [
    ["work", { ...workFiles, [FILE]: `${secret}\n` }],
    ["home", homeFiles],
    ["tmp", {}],
  ] as const;
  for (const [name, contents] of files) {
    mkdirSync(join(folder, name), { recursive: true });
    for (const [path, text] of Object.entries(contents)) {
      const file = join(folder, name, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
    }
  }
  const own = { HOME: join(folder, "home"), TMPDIR: join(folder, "tmp"), LANG: "C.UTF-8", TERM: "xterm-256color" };
  return { PATH: findPath(), ...own, NO_COLOR: "1", ...env };
}

/** Returns the path without the folders that run.mjs puts before it: agents run on the system's Node, not on Parley's. */
function findPath(): string {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  return folders.filter((folder) => !folder.startsWith(ROOT)).join(delimiter);
}

/** Returns the outcomes of the product's completions, as soon as its log has at least this many. */
async function readOutcomes(product: Product, fewest: number): Promise<string[]> {
  const deadline = performance.now() + LOG_LIMIT_MS;
  for (;;) {
    const lines = product.output.stderr.split("\n").filter((line) => line.startsWith("{") && line.endsWith("}"));
    const entries = lines.map((line) => JSON.parse(line) as { readonly msg?: string; readonly outcome?: string });
    const outcomes = entries.flatMap(({ msg, outcome }) => (msg === "completion" ? [outcome ?? "unknown"] : []));
    if (outcomes.length >= fewest || performance.now() > deadline) return outcomes;
    await sleep(50);
  }
}

interface Evidence {
  readonly finished: Finished;
  readonly format: FormatName;
  readonly outcomes: readonly string[];
  readonly requests: readonly Passed[];
  readonly secret: string;
}

function findProblems({ finished, format, outcomes, requests, secret }: Evidence): string[] {
  const ofFormat = requests.filter(({ method, path }) => method === "POST" && ROUTES[format].test(path));
  const served = outcomes.filter((outcome) => outcome === "served").length;
  const problems: [isProblem: boolean, text: string][] = [
    [finished.ending !== "0", `it ended with ${finished.ending} instead of exit code 0`],
    [ofFormat.length < 2, `it sent ${ofFormat.length} requests in the format ${format}, and 2 or more are needed`],
    [ofFormat.some(({ status }) => status !== 200), "the gateway refused a request"],
    [!ofFormat.some(({ body }) => body.includes(secret)), "no request has the command's output"],
    [!new RegExp(`returned: ".*${secret}`, "s").test(finished.stdout), "its answer does not have the command's output"],
    [served < 2, `the gateway's log has ${served} served completions, and 2 or more are needed`],
    [served < outcomes.length, `the gateway's log has the outcomes ${outcomes.join(", ")}`],
  ];
  return problems.flatMap(([isProblem, text]) => (isProblem ? [text] : []));
}

/** The requests and the end of the output, indented. */
function show({ stdout, stderr }: Finished, requests: readonly Passed[] = []): string {
  const parts = {
    requests: requests.map(({ method, path, status }) => `${method} ${path} ${status ?? "unanswered"}`).join("\n"),
    stdout,
    stderr,
  };
  return Object.entries(parts)
    .filter(([, text]) => text.trim() !== "")
    .map(([name, text]) => `\n  ${name}:\n    ${text.trimEnd().split("\n").slice(-SHOWN_LINES).join("\n    ")}`)
    .join("");
}
