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
  const folder = mkdtempSync(join(tmpdir(), "parley-base-"));
  try {
    run("debootstrap", ["--variant=minbase", "--include=ca-certificates,libatomic1,libstdc++6", DEBIAN, folder]);
    installNode(folder);
    if (existsSync(AUTHORITIES)) cpSync(AUTHORITIES, join(folder, AUTHORITIES));
    const container = run("buildah", ["from", "scratch"]).trim();
    run("buildah", ["add", "--quiet", container, folder, "/"]);
    run("buildah", ["config", "--env", `NODE_EXTRA_CA_CERTS=${AUTHORITIES}`, container]);
    run("buildah", ["commit", "--quiet", "--rm", container, name]);
    return name;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** As in the official images: Node, its licence and npm in /usr/local. */
function installNode(folder: string): void {
  const node = dirname(dirname(process.execPath));
  const local = join(folder, "usr/local");
  cpSync(process.execPath, join(local, "bin/node"));
  cpSync(join(node, "LICENSE"), join(local, "LICENSE"));
  const npm = run("npm", ["root", "--global"]).trim();
  cpSync(join(npm, "npm"), join(local, "lib/node_modules/npm"), { recursive: true, dereference: true });
  run("ln", ["-s", "../lib/node_modules/npm/bin/npm-cli.js", join(local, "bin/npm")]);
}

/** Folder of npm's downloads, which a build may use. */
export function npmCache(): string {
  return process.env["npm_config_cache"] ?? join(homedir(), ".npm");
}
