import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  cpSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, relative } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { packagedNodePath } from "../../scripts/node-version.mjs";

const root = join(import.meta.dirname, "../..");
const own = process.execPath;
const ANY = ">=18.0.0";
const NONE = ">=99.0.0";
let folder: string;
/** A Node of its own, where npm would have put it. */
let packaged: string;
/** Where the machine's Node is first in PATH, as for somebody who types `npm start`. */
let path: string;

/** A checkout with the real scripts, a packaged Node, and a program that says which Node runs it. */
beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "parley-node-")));
  cpSync(join(root, "scripts"), join(folder, "scripts"), { recursive: true });
  packaged = join(folder, relative(root, packagedNodePath!));
  for (const each of [dirname(packaged), join(folder, "node_modules/.bin"), join(folder, "bin"), join(folder, "src")])
    mkdirSync(each, { recursive: true });
  try {
    linkSync(own, packaged);
  } catch {
    copyFileSync(own, packaged);
  }
  symlinkSync(own, join(folder, "bin/node"));
  path = [join(folder, "bin"), process.env["PATH"]].join(delimiter);
  for (const name of ["package-lock.json", "node_modules/.package-lock.json"])
    writeFileSync(join(folder, name), JSON.stringify({ packages: {} }));
  writeFileSync(join(folder, "src/main.ts"), "console.log(process.execPath);");
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Start {
  /** What package.json asks of Node. */
  readonly minimum: string;
  readonly env?: Readonly<Record<string, string>>;
  /** The Node that runs the launcher. */
  readonly launcher?: string;
}

/** `npm start`, which prints the path of the Node that runs Parley. */
function start({ minimum, env = {}, launcher = own }: Start): { status: number | null; node: string; errors: string } {
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module", config: { node: minimum } }));
  const { status, stdout, stderr } = spawnSync(launcher, ["scripts/run.mjs", "src/main.ts"], {
    cwd: folder,
    env: { PATH: path, ...env },
    encoding: "utf8",
  });
  return { status, node: stdout.trim(), errors: stderr };
}

describe.runIf(packagedNodePath !== undefined)("the Node that runs Parley", () => {
  it("is the machine's own when that is new enough, though there is a packaged one", () => {
    const run = start({ minimum: ANY });
    expect(run).toMatchObject({ status: 0, node: own });
    expect(run.errors).not.toContain(packaged);
  });

  it("is the machine's own also where npm has put the packaged one in front of it", () => {
    const run = start({ minimum: ANY, launcher: packaged, env: { PATH: [dirname(packaged), path].join(delimiter) } });
    expect(run).toMatchObject({ status: 0, node: own });
    expect(run.errors).not.toContain(packaged);
  });

  it("is the packaged one when the machine's own is too old, and that is said once, with its path", () => {
    const { status, node, errors } = start({ minimum: NONE });
    expect({ status, node }).toEqual({ status: 0, node: packaged });
    const said = `Parley needs Node 99.0.0 or newer, and the installed one is ${process.versions.node}. It runs on ${packaged}`;
    expect(errors.split(said)).toHaveLength(2);
  });

  it("is never the packaged one with PARLEY_NODE=system, which says what to do", () => {
    const { status, node, errors } = start({ minimum: NONE, env: { PARLEY_NODE: "system" } });
    expect({ status, node }).toEqual({ status: 1, node: "" });
    expect(errors).toBe(
      `Parley needs Node 99.0.0 or newer, and the installed one is ${process.versions.node}. PARLEY_NODE=system rules ` +
        "out the packaged one. Install Node from https://nodejs.org or your system's packages, or unset PARLEY_NODE.\n",
    );
  });

  it("is the machine's own with PARLEY_NODE=system", () => {
    expect(start({ minimum: ANY, env: { PARLEY_NODE: "system" } })).toMatchObject({ status: 0, node: own });
  });

  it("is not guessed when PARLEY_NODE has another value", () => {
    const { status, errors } = start({ minimum: ANY, env: { PARLEY_NODE: "packaged" } });
    expect(status).toBe(1);
    expect(errors).toBe('PARLEY_NODE is "packaged": set it to "system", or unset it\n');
  });

  it("has to be installed where there is no packaged one", () => {
    rmSync(packaged);
    rmSync(join(folder, "src"), { recursive: true });
    const { status, errors } = start({ minimum: NONE });
    expect(status).toBe(1);
    expect(errors).toContain("Install Node from https://nodejs.org and try again.");
  });
});
