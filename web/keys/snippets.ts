/** Values of a key. None of them contains quotes, backslashes or spaces. */
export interface Use {
  /** Origin of this page, such as `http://127.0.0.1:8080`. */
  readonly origin: string;
  readonly secret: string;
  /** Text models that the key may use. */
  readonly models: readonly string[];
  /** Model that replaces models of the page that the key may not use. */
  readonly model: string;
}

/** Settings of a client, from `docs/clients.md`. */
export interface Client {
  readonly name: string;
  /** Heading above it. */
  readonly group: string;
  readonly steps: readonly Step[];
  readonly notes: readonly string[];
}

interface Step {
  /** The file or the program that the code is for. */
  readonly where: string;
  readonly code: string;
}

/** Placeholders of the page. */
const ORIGIN = "http://127.0.0.1:8080";
const SECRET = "YOUR_KEY";
export const MODELS: readonly string[] = ["alpha-sonnet-4.5", "alpha-haiku-4.5", "beta-3-flash"];

/** Replaces the placeholders of the page. */
export function fillIn(page: string, { origin, secret, models, model }: Use): string {
  const unusable = MODELS.filter((id) => !models.includes(id)).map((id) => [id, model] as const);
  const values = new Map([[ORIGIN, origin], [SECRET, secret], ...unusable]);
  const placeholder = new RegExp([...values.keys()].map((each) => each.replaceAll(".", "\\.")).join("|"), "g");
  return page.replace(placeholder, (found) => values.get(found)!);
}

/** Reads the sections of the page that contain code. */
export function readClients(page: string): Client[] {
  return splitAt("## ", page).flatMap(([group, sections]) =>
    splitAt("### ", sections)
      .map(([name, text]) => ({ name, group, ...readParts(text) }))
      .filter(({ steps }) => steps.length > 0),
  );
}

/** Returns the text after each heading of a level. */
function splitAt(prefix: string, text: string): [heading: string, text: string][] {
  const sections = `\n${text}`.split(`\n${prefix}`).slice(1);
  return sections.map((section) => [section.split("\n", 1)[0]!, section.slice(section.indexOf("\n") + 1)]);
}

/** The paragraph before code says where it goes; other paragraphs are notes. A paragraph is one line. */
function readParts(text: string): Pick<Client, "steps" | "notes"> {
  const parts = [...text.matchAll(/^```\w+\n([\s\S]*?)\n```$|^.+$/gm)].map(([line, code]) => ({ line, code }));
  return {
    steps: parts.flatMap(({ code }, index) =>
      code === undefined ? [] : [{ where: parts[index - 1]?.line ?? "", code }],
    ),
    notes: parts.flatMap(({ line, code }, index) =>
      code === undefined && parts[index + 1]?.code === undefined ? [line] : [],
    ),
  };
}
