import { cpSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { need, run, tryRun } from "./tools.ts";

/** Release of Debian that the Dockerfile's base image has. */
const DEBIAN = "bookworm";
/** Authorities for the package registry, where the machine has more than Node. */
const AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt";

/**
 * The base image of the build as far as the Dockerfile uses it: a clean Debian with this Node and its npm, where the registry of
 * images cannot be asked. Kept for the next run. Returns its name.
 */
export function baseImage(): string {
  const name = `localhost/parley-test-base:${DEBIAN}-node-${process.versions.node}`;
  if (tryRun("buildah", ["inspect", "--type", "image", name]).status === 0) return name;
  need("debootstrap", "apt-get install debootstrap");
  const node = nodeParts();
  const folder = mkdtempSync(join(tmpdir(), "parley-base-"));
  try {
    run("debootstrap", ["--variant=minbase", "--include=ca-certificates,libatomic1,libstdc++6", DEBIAN, folder]);
    installNode(folder, node);
    if (existsSync(AUTHORITIES)) cpSync(AUTHORITIES, join(folder, AUTHORITIES));
    commitImage(name, folder);
    return name;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Makes an image of a root file system. A failure leaves no container. */
function commitImage(name: string, folder: string): void {
  const container = run("buildah", ["from", "scratch"]).trim();
  try {
    run("buildah", ["add", "--quiet", container, folder, "/"]);
    run("buildah", ["config", "--env", `NODE_EXTRA_CA_CERTS=${AUTHORITIES}`, container]);
    run("buildah", ["commit", "--quiet", container, name]);
  } finally {
    tryRun("buildah", ["rm", container]);
  }
}

interface NodeParts {
  readonly program: string;
  /** npm's folder. */
  readonly npm: string;
  /** Undefined where Node has none beside it; a release then names its address. */
  readonly license: string | undefined;
}

/**
 * What an image needs of an installed Node, with npm of the same installation or of npm's global folder. Throws an Error for
 * one that does not run elsewhere: a package of a distribution may have its libraries, and npm's, in other folders.
 */
export function nodeParts(
  program = process.execPath,
  globalModules = run("npm", ["root", "--global"]).trim(),
  isLinked = isLinkedWithLibnode(),
): NodeParts {
  const prefix = dirname(dirname(program));
  const folders = [join(prefix, "lib/node_modules/npm"), join(globalModules, "npm")];
  const npm = folders.find((folder) => existsSync(folder));
  const remedy = "put the bin folder of an archive of https://nodejs.org first in PATH";
  if (npm === undefined)
    throw new Error(`these tests copy npm into an image, and it is not in ${folders.join(" or ")}: ${remedy}`);
  if (isLinked)
    throw new Error(`these tests copy Node into an image, and ${program} needs the distribution's libnode: ${remedy}`);
  const licenses = [join(prefix, "LICENSE"), join(prefix, "share/doc/nodejs/LICENSE")];
  return { program, npm, license: licenses.find((file) => existsSync(file)) };
}

function isLinkedWithLibnode(): boolean {
  const { node_shared: isLinked } = process.config.variables as { readonly node_shared?: boolean };
  return isLinked === true;
}

/** As in the official images: Node, its licence and npm in /usr/local. */
function installNode(folder: string, { program, npm, license }: NodeParts): void {
  const local = join(folder, "usr/local");
  cpSync(program, join(local, "bin/node"));
  if (license !== undefined) cpSync(license, join(local, "LICENSE"));
  cpSync(npm, join(local, "lib/node_modules/npm"), { recursive: true, dereference: true });
  run("ln", ["-s", "../lib/node_modules/npm/bin/npm-cli.js", join(local, "bin/npm")]);
}

/** Folder of npm's downloads, which a build may use. */
export function npmCache(): string {
  return process.env["npm_config_cache"] ?? join(homedir(), ".npm");
}
