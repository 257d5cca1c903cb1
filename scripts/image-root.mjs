// node scripts/image-root.mjs FOLDER: puts the root file system of the container image into a folder: the single executable
// of `npm run release`, the shared libraries that it loads, the files that the C library reads, and an empty data folder.
// Runs as root on Debian, in the build stage of the Dockerfile. All files have the time SOURCE_DATE_EPOCH (default 0).
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error("usage: node scripts/image-root.mjs FOLDER");

/** User and group of the process. Not one that a host is likely to have. */
const USER_ID = 65532;

const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const executable = join(root, `dist/parley-${version}-linux-${process.arch}`);
const run = (command, ...args) => execFileSync(command, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

put(executable, "usr/local/bin/parley", 0o755);
const libraries = librariesOf(executable);
for (const library of libraries) put(library, library, 0o755);
write("etc/passwd", `parley:x:${USER_ID}:${USER_ID}:Parley:/var/lib/parley:/nonexistent\n`);
write("etc/group", `parley:x:${USER_ID}:\n`);
write("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n");
// Folders on which runtimes mount, where they cannot make them in a read-only root.
for (const mounted of ["dev", "proc", "sys", "etc/parley"]) makeFolder(mounted, 0o755);
makeFolder("tmp", 0o1777);
makeFolder("var/lib/parley", 0o700);
chownSync(join(folder, "var/lib/parley"), USER_ID, USER_ID);
describe();
setTimes(folder, Number(process.env.SOURCE_DATE_EPOCH || 0));

/** The list of the image's contents (CycloneDX), with Debian's packages, and the licences. */
function describe() {
  const list = JSON.parse(run(executable, "version", "--sbom"));
  const packages = [...new Set(libraries.map(packageOf))].sort();
  for (const name of packages) {
    const [packageVersion, architecture] = run("dpkg-query", "-W", "-f=${Version} ${Architecture}", name).split(" ");
    const plain = name.replace(/:.*/, "");
    list.components.push({
      type: "library",
      "bom-ref": `deb:${plain}@${packageVersion}`,
      name: plain,
      version: packageVersion,
      purl: `pkg:deb/debian/${plain}@${encodeURIComponent(packageVersion)}?arch=${architecture}`,
    });
    put(`/usr/share/doc/${plain}/copyright`, `usr/share/doc/${plain}/copyright`, 0o644);
  }
  write("usr/share/doc/parley/sbom.cdx.json", `${JSON.stringify(list, null, 2)}\n`);
  write("usr/share/doc/parley/THIRD-PARTY-LICENSES.txt", run(executable, "version", "--licenses"));
  put(join(root, "LICENSE"), "usr/share/doc/parley/LICENSE", 0o644);
}

/** Paths of the shared libraries and of the loader. */
function librariesOf(file) {
  const paths = [...run("ldd", file).matchAll(/(\/\S+) \(0x/g)].map(([, path]) => path);
  if (paths.length === 0) throw new Error(`ldd names no libraries of ${file}`);
  return paths;
}

/** Debian's package of a library. dpkg knows /lib/… and /usr/lib/…, which are the same folder, by one of the names. */
function packageOf(library) {
  for (const path of [library, `/usr${library}`, library.replace(/^\/usr/, "")]) {
    try {
      return run("dpkg-query", "-S", path).split(": ")[0];
    } catch {
      // dpkg knows the library by its other name.
    }
  }
  throw new Error(`no package of Debian has ${library}`);
}

function put(from, to, mode) {
  const target = join(folder, to);
  mkdirSync(dirname(target), { recursive: true });
  copyFileSync(from, target);
  chmodSync(target, mode);
}

function write(path, text) {
  const target = join(folder, path);
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, text);
  chmodSync(target, 0o644);
}

function makeFolder(path, mode) {
  mkdirSync(join(folder, path), { recursive: true });
  chmodSync(join(folder, path), mode);
}

function setTimes(path, seconds) {
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    const inner = join(path, entry.name);
    if (entry.isDirectory()) setTimes(inner, seconds);
    else lutimesSync(inner, seconds, seconds);
  }
  lutimesSync(path, seconds, seconds);
}
