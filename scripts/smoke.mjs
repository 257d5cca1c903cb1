// node scripts/smoke.mjs: plays a new user's first start. Clones the last commit into an empty folder, runs `npm start`
// there, reads the dashboard's page and script, makes a key with the command that it prints, pastes the README's first curl line,
// asks again for a stream and for a picture, and ends it with SIGTERM.
// Runs on any Node >= 18 without dependencies, on the Node and npm that are first in PATH. Needs git, bash and curl.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const root = fileURLToPath(new URL("..", import.meta.url));
/** Time limit of the first start, with an installation over a slow network. */
const startTimeoutMs = 5 * 60_000;
const replyTimeoutMs = 30_000;
const stopTimeoutMs = 30_000;
const pngSignature = "89504e470d0a1a0a";
const imageModel = "beta-3-pro-image-preview";

const folder = mkdtempSync(join(tmpdir(), "parley-smoke-"));
try {
  await step("git clone", () => run("git", ["clone", "--quiet", root, join(folder, "parley")]));
  const ports = await findFreePorts(3);
  const server = startServer(ports);
  try {
    await step("npm start says how keys are made, and prints none into a log", () => readKeyCommand(server));
    const key = await step("npx parley keys create makes one", () => createKey());
    const curl = readmeCurl(key, ports[0]);
    await step("the dashboard is built and served", () => checkPages(ports[0]));
    await step("the pasted curl line gives an answer", () => checkAnswer(curl));
    await step('with "stream": true it gives a stream', () => checkStream(curl));
    await step("the image model gives a PNG", () => checkPicture(curl));
    await step("SIGTERM drains and exits with 0", () => checkStop(server, ports));
  } catch (error) {
    console.error(`\nWhat npm start printed:\n${server.output}`);
    throw error;
  } finally {
    await killServer(server);
  }
  console.log(`npm start works on Node ${process.versions.node}`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function step(name, action) {
  const startedAt = performance.now();
  const result = await action();
  console.log(`ok  ${name} (${((performance.now() - startedAt) / 1000).toFixed(1)} s)`);
  return result;
}

/** Runs `npm start` with its own data directory and ports, without variables of a parent npm. */
function startServer([http, grpc, operations]) {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(npm_|PARLEY_|NODE_ENV$|.*_API_KEY$)/i.test(name),
  );
  const env = {
    ...Object.fromEntries(inherited),
    PARLEY_HTTP_LISTEN: `127.0.0.1:${http}`,
    PARLEY_GRPC_LISTEN: `127.0.0.1:${grpc}`,
    PARLEY_OPERATIONS_LISTEN: `127.0.0.1:${operations}`,
    PARLEY_DATA_DIR: join(folder, "data"),
  };
  const npm = spawn("npm", ["start"], { cwd: join(folder, "parley"), env, stdio: ["ignore", "pipe", "pipe"] });
  const server = { npm, output: "", standardOutput: "" };
  npm.stdout.setEncoding("utf8").on("data", (text) => {
    server.output += text;
    server.standardOutput += text;
  });
  npm.stderr.setEncoding("utf8").on("data", (text) => (server.output += text));
  return server;
}

/** Creates the first key by command: it is printed to terminals only, not to output that may be logged. */
async function readKeyCommand(server) {
  await waitUntil("npm start to print how keys are made", startTimeoutMs, () => {
    assert.equal(server.npm.exitCode, null, "npm start ended by itself");
    return server.standardOutput.includes("npx parley keys create");
  });
  assert.doesNotMatch(server.output, /\bsk_parley_/, "no API key is in the output");
}

async function createKey() {
  const { stdout } = await run("npx", ["parley", "keys", "create", "--name", "trying it"], {
    cwd: join(folder, "parley"),
    env: { ...process.env, PARLEY_DATA_DIR: join(folder, "data") },
    timeout: replyTimeoutMs,
  });
  assert.match(stdout, /^sk_parley_[0-9A-Za-z]{46}\n$/);
  return stdout.trim();
}

/** The README's first completion, with this key and port. */
function readmeCurl(key, port) {
  const readme = readFileSync(join(folder, "parley/README.md"), "utf8");
  const [command] = /^curl .*\\\n.*$/m.exec(readme) ?? [];
  assert.ok(command, "the README has a curl command");
  return `export KEY=${key}\n${command.replace("127.0.0.1:8080", `127.0.0.1:${port}`)}`;
}

async function checkPages(port) {
  const page = await paste(`curl --fail --silent --show-error http://127.0.0.1:${port}/`);
  const [, script] = /<script type="module" crossorigin src="([^"]+)"/.exec(page) ?? [];
  assert.ok(script, `the page names its script: ${page}`);
  assert.notEqual(await paste(`curl --fail --silent --show-error http://127.0.0.1:${port}${script}`), "");
}

async function checkAnswer(curl) {
  const completion = JSON.parse(await paste(curl));
  assert.equal(completion.object, "chat.completion");
  assert.equal(typeof completion.choices[0].message.content, "string");
  assert.notEqual(completion.choices[0].message.content, "");
}

async function checkStream(curl) {
  const text = await paste(changeBody(curl, { stream: true }));
  const events = text.split(/\r?\n/).filter((line) => line.startsWith("data: "));
  assert.equal(events.pop(), "data: [DONE]");
  const chunks = events.map((line) => JSON.parse(line.slice("data: ".length)));
  assert.ok(chunks.every((chunk) => chunk.object === "chat.completion.chunk"));
  assert.notEqual(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join(""), "");
}

async function checkPicture(curl) {
  const completion = JSON.parse(await paste(changeBody(curl, { model: imageModel, modalities: ["text", "image"] })));
  const picture = completion.choices[0].message.content.find((part) => part.type === "image_url");
  const [start, data] = picture.image_url.url.split(",");
  assert.equal(start, "data:image/png;base64");
  assert.equal(Buffer.from(data, "base64").subarray(0, 8).toString("hex"), pngSignature);
}

async function checkStop(server, ports) {
  const ended = once(server.npm, "close", { signal: AbortSignal.timeout(stopTimeoutMs) });
  server.npm.kill("SIGTERM");
  const [code, signal] = await ended;
  assert.deepEqual({ code, signal }, { code: 0, signal: null });
  for (const port of ports) assert.equal(await isOpen(port), false, `port ${port} is closed`);
}

/** Runs a pasted shell command, and returns its output. */
async function paste(command) {
  const { stdout } = await run("bash", ["-c", command], { timeout: replyTimeoutMs, maxBuffer: 64 * 1024 * 1024 });
  return stdout;
}

/** The same curl line with other fields in its JSON body, which stands in single quotes. */
function changeBody(curl, fields) {
  const body = /'(\{[\s\S]*\})'/.exec(curl);
  assert.ok(body, `the curl line has a JSON body in single quotes: ${curl}`);
  return curl.replace(body[1], () => JSON.stringify({ ...JSON.parse(body[1]), ...fields }));
}

async function killServer({ npm }) {
  if (npm.exitCode !== null || npm.signalCode !== null) return;
  const ended = once(npm, "close");
  npm.kill("SIGTERM");
  const killTimer = setTimeout(() => npm.kill("SIGKILL"), stopTimeoutMs);
  await ended;
  clearTimeout(killTimer);
}

/** Free ports; all are held at the same time, so that they differ. */
async function findFreePorts(count) {
  const servers = Array.from({ length: count }, () => createServer().listen(0, "127.0.0.1"));
  await Promise.all(servers.map((server) => once(server, "listening")));
  const ports = servers.map((server) => server.address().port);
  await Promise.all(servers.map((server) => promisify(server.close.bind(server))()));
  return ports;
}

async function isOpen(port) {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

async function waitUntil(what, timeoutMs, condition) {
  const deadline = performance.now() + timeoutMs;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`waited ${timeoutMs / 1000} s for ${what}`);
    await wait(100);
  }
}
