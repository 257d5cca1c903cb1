import { adviceFor } from "../format/failure-advice.ts";
import type { ErrorRow, Reference, Shape } from "./reference.ts";

/** Something on the page that can be found. */
export interface Entry {
  readonly anchor: string;
  readonly name: string;
  readonly kind: string;
  /** What is said of it, in lower case. */
  readonly text: string;
}

/** How many are shown at once: more than that is no finding. */
const MOST = 20;

/** Everything on the page that has an address of its own, sections first. */
export function entriesOf(
  { topics, methods, headers, errors }: Reference,
  sections: readonly { readonly id: string; readonly title: string }[],
): Entry[] {
  const entry = (of: { anchor: string; name: string; text?: string }, kind: string): Entry => {
    return { anchor: of.anchor, name: of.name, kind, text: `${of.name} ${of.text ?? ""}`.toLowerCase() };
  };
  const ofShape = (kind: string, shape: Shape): Entry[] => [
    entry(shape, kind),
    ...shape.fields.map((field) => entry({ ...field, name: `${shape.name}.${field.name}` }, kind)),
  ];
  return [
    ...sections.map(({ id, title }) => entry({ anchor: id, name: title }, "Section")),
    ...errors.map((row) => entry({ anchor: row.anchor, name: row.code, text: wordsOf(row) }, "Error")),
    ...[...headers.request, ...headers.answer].map((header) => entry(header, "Header")),
    ...topics.flatMap(({ http }) => http.flatMap((shape) => ofShape("HTTP", shape))),
    ...methods.map((method) => entry({ ...method, name: method.path }, "gRPC")),
    ...topics.flatMap(({ grpc }) => grpc.flatMap((shape) => ofShape("gRPC", shape))),
  ];
}

function wordsOf({ code, http, grpc, errorCodes }: ErrorRow): string {
  const { means = "", todo = "" } = adviceFor(code) ?? {};
  return `${http} ${grpc} ${errorCodes.join(" ")} ${means} ${todo}`;
}

/** Those with every word, the ones that are called so first. */
export function findEntries(entries: readonly Entry[], sought: string): Entry[] {
  const words = sought
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  if (words.length === 0) return [];
  const found = entries.filter(({ text }) => words.every((word) => text.includes(word)));
  const isCalledSo = ({ name }: Entry): boolean => words.every((word) => name.toLowerCase().includes(word));
  return [...found.filter(isCalledSo), ...found.filter((entry) => !isCalledSo(entry))].slice(0, MOST);
}
