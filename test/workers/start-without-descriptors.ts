import { closeSync, openSync } from "node:fs";
import { Member } from "../../src/workers/member.ts";

/*
 * Starts a worker in a process without file descriptors, and prints how it ended. A program of its own, because its limit of open
 * files is low.
 */

const held: number[] = [];
try {
  for (;;) held.push(openSync("/dev/null", "r"));
} catch {
  // None is left.
}
const member = new Member({ number: 1 } as never, () => ({}) as never);
const ending = await member.ended;
for (const descriptor of held) closeSync(descriptor);
process.stdout.write(JSON.stringify(ending));
