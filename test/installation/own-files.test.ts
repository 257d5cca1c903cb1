import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { readFolder, readOwnFile, readOwnFolder } from "../../src/installation/own-files.ts";

const folder = mkdtempSync(join(tmpdir(), "parley-own-"));
afterAll(() => rmSync(folder, { recursive: true }));

it("reads a folder and those in it by their paths", async () => {
  mkdirSync(join(folder, "a/b"), { recursive: true });
  writeFileSync(join(folder, "x.txt"), "1");
  writeFileSync(join(folder, "a/b/y.txt"), "2");
  const files = await readFolder(folder);
  expect(Object.fromEntries([...files].map(([name, content]) => [name, content.toString()]))).toEqual({
    "x.txt": "1",
    "a/b/y.txt": "2",
  });
});

it("counts a missing folder as empty", async () => {
  expect((await readFolder(join(folder, "nowhere"))).size).toBe(0);
});

it("finds the files of this installation", async () => {
  expect(JSON.parse(readOwnFile("package.json"))).toMatchObject({ name: "parley" });
  expect([...(await readOwnFolder("src/installation")).keys()]).toContain("own-files.ts");
  expect(() => readOwnFile("no-such-file")).toThrow("no-such-file");
});
