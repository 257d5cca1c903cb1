// npm run release: packs the production files as dist/parley-VERSION.tgz, with its SHA-256 in a second file. It has the
// built program and dashboard with all packages that they need inside, the launcher, the contract, the documents, a list
// of those packages (CycloneDX) and their licences: nothing has to be installed but Node. See docs/operations/releases.md.
//
// The same sources and lock give the same bytes: no dates, no random numbers.
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ensureBuilt, readRecord } from "./build.mjs";
import { program } from "./program.mjs";
import { webApp } from "./web-app.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const dist = join(root, "dist");
const builds = [program, webApp];

/** In addition to the built files: the launcher, which has no dependencies, and documents. */
const launcher = ["parley", "run", "build", "child-process", "installation", "node-version", "program", "web-app"];
const copied = [
  ...launcher.map((name) => `scripts/${name}.mjs`),
  "exec.cmd",
  "proto",
  "docs",
  "README.md",
  "CHANGELOG.md",
  "SECURITY.md",
  "LICENSE",
];
const manifestFields = ["name", "version", "private", "description", "license", "bin", "type", "engines", "config"];

for (const build of builds) {
  if (!(await ensureBuilt(build, process.execPath))) throw new Error(`${build.name} could not be built`);
}
const folders = [...new Set(builds.flatMap((build) => readRecord(build).packages))].sort();
const stage = mkdtempSync(join(dist, "release-"));
try {
  for (const build of builds) {
    const isCompiled = (path) => path === join(build.folder, "compiled");
    cpSync(build.folder, join(stage, "dist", basename(build.folder)), {
      recursive: true,
      filter: (path) => !isCompiled(path),
    });
  }
  for (const path of copied) cpSync(join(root, path), join(stage, path), { recursive: true });
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  writeJson("package.json", {
    ...Object.fromEntries(manifestFields.map((field) => [field, manifest[field]])),
    scripts: { start: manifest.scripts.start },
  });
  writeJson("sbom.cdx.json", await describeComponents(manifest.name));
  writeFileSync(join(stage, "THIRD-PARTY-LICENSES.txt"), folders.map(describeLicense).join(`\n${"-".repeat(80)}\n\n`));
  report(await pack());
} finally {
  rmSync(stage, { recursive: true, force: true });
}

function writeJson(name, value) {
  writeFileSync(join(stage, name), `${JSON.stringify(value, null, 2)}\n`);
}

/** npm's SBOM of the lock file, reduced to packages in the built files. */
async function describeComponents(name) {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  const included = new Set(
    folders.map((folder) => `${folder.replace(/^.*node_modules\//, "")}@${packages[folder].version}`),
  );
  const list = JSON.parse(await npm("sbom", "--sbom-format=cyclonedx", "--package-lock-only"));
  // A random number and a time.
  delete list.serialNumber;
  delete list.metadata.timestamp;
  list.metadata.component.name = name;
  const self = list.metadata.component["bom-ref"];
  const direct = list.dependencies.find(({ ref }) => ref === self).dependsOn;
  // The dashboard's packages are development dependencies of the project, but part of the release.
  list.components = list.components
    .filter((component) => included.has(component["bom-ref"]))
    .map((component) => ({ ...component, scope: "required", properties: undefined }));
  list.dependencies = [
    { ref: self, dependsOn: direct.filter((ref) => included.has(ref)) },
    ...list.dependencies
      .filter(({ ref }) => included.has(ref))
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((other) => included.has(other)) })),
  ];
  if (list.components.length !== included.size)
    throw new Error(`npm sbom lists ${list.components.length} of ${included.size} packages`);
  return list;
}

/** A package's name, version and licence, with the text where it has one. */
function describeLicense(folder) {
  const path = join(root, folder);
  const { name, version, license = "see its text" } = JSON.parse(readFileSync(join(path, "package.json"), "utf8"));
  const texts = readdirSync(path)
    .filter((file) => /^(licen[cs]e|notice|copying)/i.test(file))
    .map((file) => readFileSync(join(path, file), "utf8").trim());
  return [`${name} ${version}: ${license}`, ...texts].join("\n\n") + "\n";
}

/** Packs the staging folder and returns the path of the package. */
async function pack() {
  mkdirSync(dist, { recursive: true });
  const [{ filename }] = Object.values(
    JSON.parse(await npm("pack", stage, "--json", "--ignore-scripts", "--pack-destination", dist)),
  );
  return join(dist, filename);
}

function report(path) {
  const content = readFileSync(path);
  const sha256 = createHash("sha256").update(content).digest("hex");
  writeFileSync(`${path}.sha256`, `${sha256}  ${basename(path)}\n`);
  console.log(
    `${path}: ${(content.length / 1024 / 1024).toFixed(1)} MiB, ${folders.length} packages, SHA-256 ${sha256}`,
  );
}

async function npm(...args) {
  const options = { cwd: root, maxBuffer: 64 * 1024 * 1024, shell: process.platform === "win32" };
  return (await promisify(execFile)("npm", [...args, "--loglevel=error"], options)).stdout;
}
