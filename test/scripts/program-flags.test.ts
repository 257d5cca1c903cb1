import { expect, it } from "vitest";
import { heapFlags } from "../../scripts/program-flags.mjs";

const MIB = 1024 * 1024;

it.each([
  ["no container", 0, "", []],
  ["512 MiB, of which V8 takes half by itself", 512 * MIB, "", []],
  ["256 MiB", 256 * MIB, "", ["--max-old-space-size=128"]],
  ["256 MiB, and a limit of the operator", 256 * MIB, "--max-old-space-size=100", []],
  ["256 MiB, and other options of the operator", 256 * MIB, "--trace-gc", ["--max-old-space-size=128"]],
])("V8's heap is limited to half of the memory: %s", (_, memoryBytes, options, flags) => {
  expect(heapFlags(memoryBytes, options)).toEqual(flags);
});
