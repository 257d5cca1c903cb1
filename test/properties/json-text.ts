import fc from "fast-check";
import { anyCharacter } from "../support/any-character.ts";

/*
 * JSON as text that a program in another language might write: with numbers that a double cannot hold, and with every
 * string that JSON can say. The texts are in the form that JSON.stringify writes: no white space, nothing escaped that
 * need not be. Names that look like array indexes are left out: an object of JavaScript keeps those in another order.
 */

const INDEX = /^(?:0|[1-9]\d*)$/;

const digits = (least: number, most: number): fc.Arbitrary<string> =>
  fc
    .tuple(
      fc.constantFrom("", "-"),
      fc.integer({ min: 1, max: 9 }),
      fc.string({ unit: fc.integer({ min: 0, max: 9 }).map(String), minLength: least - 1, maxLength: most - 1 }),
    )
    .map(([sign, first, rest]) => `${sign}${first}${rest}`);

const number: fc.Arbitrary<string> = fc.oneof(
  digits(17, 30),
  fc.integer().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  fc.tuple(digits(1, 12), digits(12, 24)).map(([whole, part]) => `${whole}.${part.replace("-", "")}`),
  fc.constantFrom("1e400", "-1E-400", "1.0", "0.10", "-0", "-0.0", "1E5", "2e+2", "9007199254740993"),
);

const anyString: fc.Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: fc.string({ unit: anyCharacter, maxLength: 8 }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      "\ud800",
      "a\udc00b",
      "\u2028\u0000\u007f",
      '"\\/',
      "</script>",
      "1e400",
      "12345678901234567890",
    ),
  },
);

const name: fc.Arbitrary<string> = fc
  .oneof(anyString, fc.constantFrom("__proto__", "constructor", "toJSON", "type", "$ref"))
  .filter((text) => !INDEX.test(text));

function object(value: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc
    .uniqueArray(fc.tuple(name, value), { selector: ([key]) => key, maxLength: 4 })
    .map((fields) => `{${fields.map(([key, text]) => `${JSON.stringify(key)}:${text}`).join(",")}}`);
}

const { value } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: "small" },
    number,
    anyString.map((text) => JSON.stringify(text)),
    fc.constantFrom("true", "false", "null"),
    fc.array(tie("value"), { maxLength: 3 }).map((items) => `[${items.join(",")}]`),
    object(tie("value")),
  ),
}));

/** An object as JSON text: a tool's arguments. */
export const jsonObject: fc.Arbitrary<string> = object(value);

/** A schema of a tool's arguments as JSON text, with numbers that a double cannot hold. */
export const jsonSchema: fc.Arbitrary<string> = fc
  .uniqueArray(
    fc.record({
      name,
      type: fc.constantFrom("string", "integer", "number", "boolean"),
      maximum: number,
      description: anyString,
    }),
    { selector: (property) => property.name, maxLength: 4 },
  )
  .map((properties) => {
    const described = properties.map(({ name: key, type, maximum, description }) => {
      const rule = type === "integer" || type === "number" ? `,"maximum":${maximum}` : "";
      return `${JSON.stringify(key)}:{"type":"${type}","description":${JSON.stringify(description)}${rule}}`;
    });
    const required = JSON.stringify(properties.slice(0, 2).map((property) => property.name));
    return `{"type":"object","properties":{${described.join(",")}},"required":${required}}`;
  });
