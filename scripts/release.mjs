// npm run release [-- --repository URI] [--builder URI]: packs the production files as dist/parley-VERSION.tgz. It has the
// built program and dashboard with all packages that they need inside, the launcher, the contract, the documents, a list
// of those packages (CycloneDX) and their licences: nothing has to be installed but Node. On Linux also the single
// executable, dist/parley-VERSION-linux-ARCH, which has Node inside. Beside them the contract's protos, the lists of
// packages, the changelog of the version, the provenance, and SHA256SUMS of all. See docs/operations/releases.md.
//
// The same sources, lock and Node give the same bytes: no dates, no random numbers.
import { execFile } from "node:child_process";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { ensureBuilt, readRecord } from "./build.mjs";
import { buildExecutable, canBuildExecutable } from "./build-executable.mjs";
import { program } from "./program.mjs";
import { checkRelease, describeProvenance, formatSums, readSource, sha256 } from "./release-facts.mjs";
import { webApp } from "./web-app.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const dist = join(root, "dist");
const builds = [program, webApp];

/** In addition to the built files: the launcher, which has no dependencies, and documents. */
const launcher = [
  "parley",
  "run",
  "build",
  "child-process",
  "installation",
  "node-version",
  "program",
  "program-flags",
  "web-app",
];
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

const { values: flags } = parseArgs({
  options: {
    /** Where the sources are published. */
    repository: { type: "string", default: "urn:parley:repository" },
    /** Who made the build, as a URI. */
    builder: { type: "string", default: "urn:parley:builder:unnamed" },
  },
});
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const release = { version: manifest.version, source: readSource(root) };
const changelog = checkRelease({ ...release, changelog: readFileSync(join(root, "CHANGELOG.md"), "utf8") });
if (release.source.tags.length === 0) console.log(`Not a release: the commit has no tag v${release.version}`);

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
  writeJson("package.json", {
    ...Object.fromEntries(manifestFields.map((field) => [field, manifest[field]])),
    scripts: { start: manifest.scripts.start },
  });
  const components = await describeComponents(manifest.name);
  const licenses = folders.map(describeLicense);
  writeJson("sbom.cdx.json", components);
  writeFileSync(join(stage, "THIRD-PARTY-LICENSES.txt"), joinLicenses(licenses));
  const paths = [await pack(), publish("sbom.cdx.json", `parley-${release.version}.sbom.cdx.json`)];
  paths.push(...(await makeExecutable({ components, licenses })));
  copyFileSync(join(webApp.folder, "proto/parley-protos.tar.gz"), join(stage, "protos.tar.gz"));
  paths.push(publish("protos.tar.gz", `parley-${release.version}-protos.tar.gz`));
  writeFileSync(join(stage, "changelog.md"), `# Parley ${release.version}\n\n${changelog}\n`);
  paths.push(publish("changelog.md", `parley-${release.version}.changelog.md`));
  writeJson("provenance.json", describeBuild(paths.map(toArtifact)));
  paths.push(publish("provenance.json", `parley-${release.version}-${process.platform}-${process.arch}.intoto.json`));
  writeFileSync(join(dist, "SHA256SUMS"), formatSums(paths.map(toArtifact)));
  for (const path of paths) report(path);
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

function joinLicenses(licenses) {
  return licenses.join(`\n${"-".repeat(80)}\n\n`);
}

/** Builds the single executable, whose list and licences also have Node, and which prints them. */
async function makeExecutable({ components, licenses }) {
  if (!canBuildExecutable) {
    console.log(`No single executable: that needs Linux and Node 25.5 or newer, not ${process.version}`);
    return [];
  }
  const node = describeNode();
  writeJson("sbom.cdx.json", { ...components, components: [...components.components, node] });
  writeFileSync(join(stage, "THIRD-PARTY-LICENSES.txt"), joinLicenses([...licenses, readNodeLicense()]));
  const files = ["sbom.cdx.json", "THIRD-PARTY-LICENSES.txt", "LICENSE"];
  const path = join(dist, `parley-${release.version}-linux-${process.arch}`);
  await buildExecutable(path, Object.fromEntries(files.map((name) => [name, join(stage, name)])));
  return [path, publish("sbom.cdx.json", `${basename(path)}.sbom.cdx.json`)];
}

/** The Node that is in the executable, as a component of the list. */
function describeNode() {
  const content = sha256(readFileSync(process.execPath));
  const version = process.versions.node;
  return {
    type: "application",
    "bom-ref": `node@${version}`,
    name: "node",
    version,
    cpe: `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`,
    hashes: [{ alg: "SHA-256", content }],
    externalReferences: [{ type: "distribution", url: `https://nodejs.org/dist/v${version}/` }],
  };
}

/** Node's licence with those of its dependencies, as its archives and images have it beside `bin`. */
function readNodeLicense() {
  const path = join(dirname(process.execPath), "../LICENSE");
  const text = existsSync(path)
    ? readFileSync(path, "utf8")
    : `https://github.com/nodejs/node/blob/${process.version}/LICENSE`;
  return `Node.js ${process.versions.node}: MIT, with parts under other licences\n\n${text.trim()}\n`;
}

/** Packs the staging folder and returns the path of the package. */
async function pack() {
  mkdirSync(dist, { recursive: true });
  const [{ filename }] = Object.values(
    JSON.parse(await npm("pack", stage, "--json", "--ignore-scripts", "--pack-destination", dist)),
  );
  return join(dist, filename);
}

/** Copies a file of the staging folder to the artifacts, and returns its path there. */
function publish(name, as) {
  const path = join(dist, as);
  copyFileSync(join(stage, name), path);
  return path;
}

function toArtifact(path) {
  return { name: basename(path), sha256: sha256(readFileSync(path)) };
}

function describeBuild(artifacts) {
  const node = { name: "node", sha256: sha256(readFileSync(process.execPath)), version: process.versions.node };
  const lock = toArtifact(join(root, "package-lock.json"));
  return describeProvenance({ ...release, artifacts, lock, node, ...flags });
}

function report(path) {
  const content = readFileSync(path);
  console.log(`${path}: ${(content.length / 1024 / 1024).toFixed(1)} MiB, SHA-256 ${sha256(content)}`);
}

async function npm(...args) {
  const options = { cwd: root, maxBuffer: 64 * 1024 * 1024, shell: process.platform === "win32" };
  return (await promisify(execFile)("npm", [...args, "--loglevel=error"], options)).stdout;
}
