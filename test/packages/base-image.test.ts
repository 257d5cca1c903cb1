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
    expect(nodeParts(program, false)).toEqual({ program, npm: join(prefix, "lib/node_modules/npm"), license });
  });

  it("may have no licence beside it", () => {
    install("lib/node_modules/npm/package.json");
    expect(nodeParts(program, false).license).toBeUndefined();
  });

  it("is refused without npm beside it, with what to do", () => {
    install("share/nodejs/npm/package.json");
    expect(() => nodeParts(program, false)).toThrow(
      `${program} has no npm at ${prefix}/lib/node_modules/npm: put the bin folder of an archive of https://nodejs.org first in PATH`,
    );
  });

  it("is refused when it needs libraries of the distribution", () => {
    install("lib/node_modules/npm/package.json");
    expect(() => nodeParts(program, true)).toThrow(`${program} loads the distribution's libnode`);
  });
});
