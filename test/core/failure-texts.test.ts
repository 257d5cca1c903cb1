import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseSync, Visitor } from "rolldown/utils";
import { expect, it } from "vitest";

const SOURCES = join(import.meta.dirname, "../../src");

/** One widely used client takes an error with one of these for final, and never tries again. */
const FINAL_WORDS = /quota|billing|credit(?!ential)/i;

/** The messages of all `new Failure(code, message)` in the sources. */
function failureMessages(path: string): string[] {
  const source = readFileSync(join(SOURCES, path), "utf8");
  const messages: string[] = [];
  new Visitor({
    NewExpression({ callee, arguments: [, message] }) {
      if (callee.type === "Identifier" && callee.name === "Failure" && message !== undefined)
        messages.push(source.slice(message.start, message.end));
    },
  }).visit(parseSync(path, source).program);
  return messages;
}

it("trap 32: no failure has a text that makes clients give up", () => {
  const files = readdirSync(SOURCES, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".ts"));
  const messages = files.flatMap(failureMessages);
  expect(messages.length).toBeGreaterThan(50);
  expect(messages.filter((message) => FINAL_WORDS.test(message))).toEqual([]);
});
