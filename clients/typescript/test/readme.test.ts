import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { promisify } from "node:util";

test("the first program of the README streams an answer and ends", async () => {
  const [, program] = /```ts\n([^]*?)```/.exec(readFileSync("README.md", "utf8"))!;
  // It has no types, so it is JavaScript too.
  writeFileSync("built/first-program.js", program!);
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ["built/first-program.js"], {
    timeout: 10_000,
  });
  assert.match(stdout, /\w+ \w+ \w+/);
  assert.equal(stderr, "");
});
