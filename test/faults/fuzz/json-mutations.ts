import fc from "fast-check";
import { jsonObject } from "../../properties/json-text.ts";
import { seed } from "../../support/scale.ts";
import { type JsonTree, writeTree } from "./json-tree.ts";
import type { Random } from "./random.ts";

/** JSON values that are known problems for parsers, as written. */
const ODD_VALUES = [
  "null",
  "true",
  "0",
  "-0",
  "-1",
  "1.5",
  "1e999",
  "-1e999",
  "1e-400",
  "2147483648",
  "-2147483649",
  "9007199254740993",
  "18446744073709551616",
  "9".repeat(400),
  `0.${"3".repeat(400)}`,
  '""',
  '" "',
  '"\\u0000"',
  '"\\ud800"',
  '"\\udc00\\ud800"',
  '"\\u202e\\u2028\\ufeff"',
  '"e\\u0301\\u0323🏳️‍🌈👨‍👩‍👧"',
  '"__proto__"',
  '"constructor"',
  '"../../etc/passwd"',
  '"${HOME} {{7*7}} %s%n"',
  '"data:image/png;base64,////"',
  '"data:image/png;base64,%%%"',
  '"https://169.254.169.254/latest"',
  '"http://[::1]:1/"',
  '"2026-13-45T99:99:99Z"',
  "[]",
  "{}",
  "[[]]",
  "[null]",
  '{"__proto__":{"polluted":true}}',
  '{"constructor":{"prototype":{"polluted":true}}}',
  '{"toString":1,"valueOf":1,"toJSON":1,"then":1,"length":-1}',
];

const ODD_KEYS = [
  "__proto__",
  "constructor",
  "prototype",
  "toJSON",
  "then",
  "length",
  "0",
  "",
  "\u0000",
  "\ud800",
  "日本",
];

/** Objects with number and string formats of other programs. */
const drawnObjects = fc.sample(jsonObject, { seed: seed(), numRuns: 200 });

/** Texts of any characters, some with lone surrogates. */
const drawnTexts = fc.sample(
  fc.string({
    unit: fc.oneof(fc.constantFrom("\ud83d", "\udc4d"), fc.string({ unit: "binary", minLength: 1, maxLength: 1 })),
    minLength: 1,
    maxLength: 40,
  }),
  {
    seed: seed(),
    numRuns: 200,
  },
);

/** Nesting depths, for parsers with a limit and recursive ones. */
const DEPTHS = [2, 8, 62, 63, 64, 65, 100, 1000, 20_000];

/** Longer values are not repeated thousands of times. */
const MANY_OF_CHARS = 1000;

/** Replaces a value by another. */
export function oddValue(random: Random): JsonTree {
  if (random.percent(25)) return { kind: "text", text: random.pick(drawnObjects) };
  if (random.percent(8)) {
    const length = 10 ** (1 + random.below(4)) + random.below(3);
    return {
      kind: "text",
      text: JSON.stringify(random.pick(["a", "é", "日", "🗼", "\\", '"', "\n", "<"]).repeat(length)),
    };
  }
  if (random.percent(8)) {
    const depth = random.pick(DEPTHS);
    const [open, close] = random.percent(50) ? ["[", "]"] : ['{"a":', "}"];
    return { kind: "text", text: `${open.repeat(depth)}${random.pick(["", "1"]) || "0"}${close.repeat(depth)}` };
  }
  return { kind: "text", text: random.pick(ODD_VALUES) };
}

/** Returns the tree with one to three parts, mostly one, replaced, removed, repeated, renamed, moved or added. */
export function mutateJson(tree: JsonTree, random: Random): JsonTree {
  let mutated = tree;
  for (let edits = random.percent(70) ? 1 : 2 + random.below(2); edits > 0; edits--)
    mutated = mutateAt(mutated, tree, random);
  return mutated;
}

/** Fields that accept any text. */
const SPOKEN = new Set(['"content"', '"text"', '"description"', '"x_unknown"']);

/** Returns the tree with other texts and an unknown field, which is still valid. */
export function restateJson(tree: JsonTree, random: Random): JsonTree {
  if (tree.kind === "text") return tree;
  if (tree.kind === "list") return { kind: "list", items: tree.items.map((item) => restateJson(item, random)) };
  const fields = tree.fields.map(([key, value]): readonly [string, JsonTree] =>
    SPOKEN.has(key) && value.kind === "text" && value.text.length > 4
      ? [key, { kind: "text", text: JSON.stringify(random.pick(drawnTexts)) }]
      : [key, restateJson(value, random)],
  );
  if (random.percent(10)) fields.push(['"x_unknown"', oddValue(random)]);
  return { kind: "object", fields };
}

/** Descends into the tree for a random number of levels, and changes a value there. */
function mutateAt(tree: JsonTree, whole: JsonTree, random: Random): JsonTree {
  const isLeaf = tree.kind === "text" || (tree.kind === "list" ? tree.items : tree.fields).length === 0;
  if (isLeaf || random.percent(8)) return random.percent(80) ? oddValue(random) : anyPart(whole, random);
  if (tree.kind === "list") {
    const at = random.below(tree.items.length);
    const items = [...tree.items];
    if (random.percent(75)) items[at] = mutateAt(items[at]!, whole, random);
    else changeList(items, at, random);
    return { kind: "list", items };
  }
  const at = random.below(tree.fields.length);
  const fields = [...tree.fields];
  if (random.percent(75)) fields[at] = [fields[at]![0], mutateAt(fields[at]![1], whole, random)];
  else changeFields(fields, at, random);
  return { kind: "object", fields };
}

function changeList(items: JsonTree[], at: number, random: Random): void {
  switch (random.below(4)) {
    case 0:
      return void items.splice(at, 1);
    case 1:
      return void items.splice(at, 0, oddValue(random));
    case 2:
      return void items.unshift(...items.splice(at));
    default:
      return void items.push(...Array.from({ length: timesOf(items[at]!, random) }, () => items[at]!));
  }
}

/** Number of repetitions of a value: rarely many, because lists have limits, and never hundreds of megabytes. */
function timesOf(item: JsonTree, random: Random): number {
  return random.percent(5) && writeTree(item).length < MANY_OF_CHARS ? 2100 : random.below(20);
}

function changeFields(fields: (readonly [string, JsonTree])[], at: number, random: Random): void {
  const [key, value] = fields[at]!;
  switch (random.below(4)) {
    case 0:
      return void fields.splice(at, 1);
    case 1:
      // A duplicate key: parsers differ in which one they use.
      return void fields.push([key, random.percent(50) ? value : oddValue(random)]);
    case 2:
      fields[at] = [JSON.stringify(random.pick(ODD_KEYS)), value];
      return;
    default:
      return void fields.splice(at, 0, [JSON.stringify(random.pick(ODD_KEYS)), oddValue(random)]);
  }
}

function anyPart(tree: JsonTree, random: Random): JsonTree {
  if (tree.kind === "text" || random.percent(30)) return tree;
  const inner = tree.kind === "list" ? tree.items : tree.fields.map(([, value]) => value);
  return inner.length === 0 ? tree : anyPart(random.pick(inner), random);
}
