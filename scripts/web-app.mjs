// Bringing the built dashboard up to date with its sources. Runs on any Node >= 18, without dependencies.
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { runCommand } from "./child-process.mjs";
import { withInstallationLock } from "./installation.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Where the built files are. */
export const webAppFolder = join(root, "dist/console");
/** Says which sources the files beside it were made of. */
export const webAppRecord = "built.json";

/** Everything that the built files depend on. */
export const webAppSources = [
  "src/console/web",
  "gen/parley/console",
  "gen/google/rpc",
  // What the API reference is made of.
  "proto/parley/v1",
  "gen/parley/v1",
  "src/front/openapi",
  "src/front/openai",
  "src/front/exchange.ts",
  "src/edge/http/json.ts",
  "src/core/failure.ts",
  "src/core/validate.ts",
  "src/edge/failure-table.ts",
  "scripts/reference",
  "package-lock.json",
  "scripts/build-web-app.mjs",
];

/**
 * Builds the dashboard unless that was done already with these sources, which takes a few milliseconds to find out. A
 * build that fails says why and is no reason to serve nothing else.
 *
 * @param {string} node the program to build with
 * @throws {Error} when a signal ended the build: somebody wants us to stop
 */
export async function ensureWebApp(node) {
  let status = 0;
  try {
    if (isBuilt()) return;
    await withInstallationLock(async () => {
      if (isBuilt()) return;
      console.error("Building the dashboard …");
      status = await runCommand(node, [join(root, "scripts/build-web-app.mjs")], { cwd: root });
    });
  } catch (error) {
    // Such as a folder that nobody may write to.
    console.error(error.message);
    status = 1;
  }
  if (status > 128) throw new Error("building the dashboard was interrupted");
  if (status !== 0) console.error("The dashboard could not be built; everything else works without it.");
}

/** A hash of all sources, by name and content. */
export function hashWebAppSources() {
  const hash = createHash("sha256");
  for (const path of webAppSources.flatMap((source) => listFiles(join(root, source)))) {
    hash
      .update(`${relative(root, path).split(sep).join("/")}\0`)
      .update(readFileSync(path))
      .update("\0");
  }
  return hash.digest("hex");
}

function isBuilt() {
  const record = join(webAppFolder, webAppRecord);
  return existsSync(record) && JSON.parse(readFileSync(record, "utf8")).sources === hashWebAppSources();
}

/** The file itself, or all files in a folder and below, in the same order everywhere. */
function listFiles(path) {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path)
    .sort()
    .flatMap((name) => listFiles(join(path, name)));
}
