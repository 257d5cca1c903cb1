import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MODELS, startThreeDialects, type ThreeDialects } from "./support/three-dialects.ts";

const FOLDER = new URL("../fixtures/formats/clients/", import.meta.url);

/** A request that a real client sent, with its texts shortened. */
interface Recorded {
  readonly client: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
}

type Dialect = keyof typeof MODELS;

const read = (file: string): unknown => JSON.parse(readFileSync(new URL(file, FOLDER), "utf8"));
/** What each dialect has no place for, in the words of the client's format. */
const OMITTED = read("omitted.json") as Readonly<Record<string, Readonly<Record<Dialect, readonly string[]>>>>;
const NAMES = readdirSync(FOLDER)
  .filter((file) => file !== "omitted.json")
  .map((file) => file.replace(".json", ""));

let world: ThreeDialects;
beforeAll(async () => {
  world = await startThreeDialects();
});
afterAll(() => world.stop());

/** Sends the request as it was recorded, but for the model. */
async function send({ path, headers, body }: Recorded, model: string): Promise<{ status: number; text: string }> {
  const named = "model" in body ? { ...body, model } : body;
  const response = await fetch(world.product.url + path.replace(/models\/[^:]+:/, `models/${model}:`), {
    method: "POST",
    headers: { ...headers, "content-type": "application/json", authorization: `Bearer ${world.apiKey}` },
    body: JSON.stringify(named),
  });
  return { status: response.status, text: await response.text() };
}

/** The names in `parley.omitted` of a whole answer, or of a stream's last event with a report. */
function omittedIn(text: string): unknown {
  const events = text.startsWith("{") ? [text] : text.match(/(?<=^data: )\{.*$/gm)!;
  const reports = events.flatMap((event) => {
    const { parley, response } = JSON.parse(event) as { parley?: unknown; response?: { parley?: unknown } };
    return (parley ?? response?.parley ?? []) as { readonly omitted: unknown };
  });
  return reports.at(-1)!.omitted;
}

const isCount = ({ path }: Recorded): boolean => /count_?tokens/i.test(path);

it("has a line for each recorded completion", () => {
  expect(Object.keys(OMITTED)).toEqual(NAMES.filter((name) => !isCount(read(`${name}.json`) as Recorded)));
});

describe.each(NAMES)("%s", (name) => {
  const recorded = read(`${name}.json`) as Recorded;

  it.each(Object.keys(MODELS) as Dialect[])("is served by the %s dialect, and lists what is lost", async (dialect) => {
    const { status, text } = await send(recorded, MODELS[dialect]);
    expect({ status, text: status === 200 ? "" : text }).toEqual({ status: 200, text: "" });
    if (isCount(recorded)) return;
    expect(omittedIn(text)).toEqual(OMITTED[name]![dialect]);
  });
});
