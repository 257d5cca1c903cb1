import { parseSync, Visitor } from "rolldown/utils";

/** A call that names a test or a group, as in the source: `it(`, `it.each(`, `describe.each(`. */
const NAMING = /^(?:describe|it|test)\b/;

/** A range of a source, as offsets. */
interface Span {
  readonly start: number;
  readonly end: number;
}

/**
 * Returns the titles in a source file: string arguments of `it` and `describe`, tables of `it.each` including named
 * ones, and `name` properties of scenario tables. Template placeholders become `…`. Comments and other strings are
 * omitted.
 */
export function readTitles(path: string, source: string): string[] {
  const { program, errors } = parseSync(path, source);
  if (errors.length > 0) throw new Error(`${path} cannot be parsed: ${errors[0]?.message}`);
  const naming: Span[] = [];
  const constants = new Map<string, Span>();
  const namedTables: string[] = [];
  const texts: (Span & { readonly text: string })[] = [];
  new Visitor({
    CallExpression({ callee, arguments: given }) {
      if (!NAMING.test(source.slice(callee.start, callee.end))) return;
      for (const argument of given) {
        if (argument.type === "Identifier") namedTables.push(argument.name);
        else if (argument.type !== "ArrowFunctionExpression" && argument.type !== "FunctionExpression")
          naming.push(argument);
      }
    },
    VariableDeclarator({ id, init }) {
      if (id.type === "Identifier" && init !== null) constants.set(id.name, init);
    },
    Property({ key, value }) {
      if (key.type === "Identifier" && key.name === "name") naming.push(value);
    },
    Literal({ start, end, value }) {
      if (typeof value === "string") texts.push({ start, end, text: value });
    },
    TemplateLiteral({ start, end, quasis }) {
      texts.push({ start, end, text: quasis.map(({ value }) => value.cooked).join("…") });
    },
  }).visit(program);
  naming.push(...namedTables.flatMap((name) => constants.get(name) ?? []));
  const isTitle = ({ start, end }: Span): boolean => naming.some((span) => span.start <= start && end <= span.end);
  return texts.filter(isTitle).map(({ text }) => text);
}
