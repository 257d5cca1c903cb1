import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";
import { heapFlags, nativeEnvironment } from "../../scripts/program-flags.mjs";

const MIB = 1024 * 1024;

it.each([
  ["no container", 0, "", []],
  ["512 MiB, of which V8 takes half by itself", 512 * MIB, "", []],
  ["256 MiB", 256 * MIB, "", ["--max-old-space-size=85"]],
  ["256 MiB, and a limit of the operator", 256 * MIB, "--max-old-space-size=100", []],
  ["256 MiB, and other options of the operator", 256 * MIB, "--trace-gc", ["--max-old-space-size=85"]],
])("V8's heap is limited to a third of a small memory: %s", (_, memoryBytes, options, flags) => {
  expect(heapFlags(memoryBytes, options)).toEqual(flags);
});

/**
 * Allocates 8 buffers of 10 MiB, each before a small one that is kept, and frees them, three times. Prints the MiB that this has added within
 * two seconds: V8 frees in the background.
 */
const LARGE_AND_SMALL = `
  const { readFileSync } = require("node:fs");
  const own = () => Number(/^RssAnon:\\s+(\\d+)/m.exec(readFileSync("/proc/self/status", "latin1"))[1]) / 1024;
  const [kept, before] = [[], own()];
  const allocate = (bytes) => Buffer.allocUnsafeSlow(bytes).fill(1);
  const large = () => {
    const buffer = allocate(10 * 1024 * 1024);
    kept.push(allocate(100_000));
    return buffer;
  };
  const tell = (times, least) => {
    gc();
    const added = Math.min(own() - before, least);
    if (times === 0) console.log(added);
    else setTimeout(tell, 100, times - 1, added);
  };
  const run = (times) => {
    if (times === 0) return tell(20, Infinity);
    Array.from({ length: 8 }, large);
    gc();
    setTimeout(run, 20, times - 1);
  };
  run(3);
`;

it.runIf(process.platform === "linux")(
  "memory of large buffers is returned, also beside small ones that are kept",
  () => {
    const env = { PATH: process.env["PATH"], ...nativeEnvironment };
    const added = execFileSync(process.execPath, ["--expose-gc", "-e", LARGE_AND_SMALL], { env, encoding: "utf8" });
    expect(Number(added)).toBeLessThan(30);
  },
);
