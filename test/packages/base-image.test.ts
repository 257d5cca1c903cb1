import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { nodeParts } from "./base-image.ts";

let prefix: string;
let program: string;
beforeEach(() => {
  prefix = mkdtempSync(join(tmpdir(), "parley-node-"));
  program = join(prefix, "bin/node");
});
afterEach(() => rmSync(prefix, { recursive: true }));

function install(file: string): string {
  const path = join(prefix, file);
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, "");
  return path;
}

describe("the Node of the base image", () => {
  it.each(["LICENSE", "share/doc/nodejs/LICENSE"])("has npm and the licence beside it: %s", (file) => {
    install("lib/node_modules/npm/package.json");
    const license = install(file);
    const npm = join(prefix, "lib/node_modules/npm");
    expect(nodeParts(program, join(prefix, "global"), false)).toEqual({ program, npm, license });
  });

  it("may be a program alone, with npm's global folder", () => {
    install("global/npm/package.json");
    const npm = join(prefix, "global/npm");
    expect(nodeParts(program, join(prefix, "global"), false)).toEqual({ program, npm, license: undefined });
  });

  it("is refused where a distribution has npm elsewhere, with what to do", () => {
    install("share/nodejs/npm/package.json");
    expect(() => nodeParts(program, join(prefix, "global"), false)).toThrow(
      `it is not in ${prefix}/lib/node_modules/npm or ${prefix}/global/npm: put the bin folder of an archive of https://nodejs.org`,
    );
  });

  it("is refused when it needs libraries of the distribution", () => {
    install("lib/node_modules/npm/package.json");
    expect(() => nodeParts(program, "", true)).toThrow(`${program} needs the distribution's libnode`);
  });

  it("is the one that runs these tests", () => {
    expect(nodeParts().program).toBe(process.execPath);
  });
});
