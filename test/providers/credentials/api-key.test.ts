import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { toApiKey } from "../../../src/providers/credentials/api-key.ts";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "parley-key-"));
  vi.useFakeTimers({ toFake: ["performance"] });
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(folder, { recursive: true });
});

/** Replaces the file as secret managers do: by a new one of the same name. */
function put(file: string, content: string): void {
  writeFileSync(`${file}.new`, content);
  renameSync(`${file}.new`, file);
}

describe("a key", () => {
  it("is sent alone, and in authorization with its scheme", () => {
    expect(toApiKey("secret-1", "x-api-key").headers()).toEqual({ "x-api-key": "secret-1" });
    expect(toApiKey("secret-1", "authorization").headers()).toEqual({ authorization: "Bearer secret-1" });
  });

  it("in a file is read again a second after it has changed", () => {
    const file = join(folder, "key");
    put(file, "secret-1\n");
    const key = toApiKey(`file:${file}`, "x-api-key");
    const first = key.headers();
    expect(first).toEqual({ "x-api-key": "secret-1" });
    put(file, "secret-2-longer\n");
    vi.advanceTimersByTime(999);
    expect(key.headers()).toBe(first);
    vi.advanceTimersByTime(1);
    expect(key.headers()).toEqual({ "x-api-key": "secret-2-longer" });
    expect(key.secrets()).toEqual(["secret-2-longer", "secret-1"]);
  });

  it("in a file that is gone, or has no key, stays the last one", () => {
    const file = join(folder, "key");
    put(file, "secret-1");
    const key = toApiKey(`file:${file}`, "x-api-key");
    for (const change of [() => rmSync(file), () => put(file, ""), () => put(file, "two words")]) {
      change();
      vi.advanceTimersByTime(1000);
      expect(key.headers()).toEqual({ "x-api-key": "secret-1" });
    }
    put(file, "secret-2");
    vi.advanceTimersByTime(1000);
    expect(key.headers()).toEqual({ "x-api-key": "secret-2" });
  });

  it.each([
    ["", "the file is empty"],
    ["two words", "more than one word"],
    ["x".repeat(17 * 1024), "too long"],
  ])("in a file needs one word (%#)", (content, problem) => {
    const file = join(folder, "key");
    put(file, content);
    expect(() => toApiKey(`file:${file}`, "x-api-key")).toThrow(problem);
  });

  it("needs a file that is there", () => {
    expect(() => toApiKey(`file:${join(folder, "none")}`, "x-api-key")).toThrow("ENOENT");
  });
});
