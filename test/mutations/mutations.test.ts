import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { MUTATIONS } from "./mutations.ts";

const ROOT = join(import.meta.dirname, "../..");

describe.each(MUTATIONS)("the mutation against «$promise»", ({ file, text, by, tests }) => {
  it("changes something that stands in the source once, and names tests that exist", () => {
    expect(by).not.toBe(text);
    expect(readFileSync(join(ROOT, file), "utf8").split(text)).toHaveLength(2);
    expect(tests.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });
});
