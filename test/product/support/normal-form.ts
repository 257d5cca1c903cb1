import type { Json } from "./fixtures.ts";

/*
 * Answers without what may differ from run to run: IDs that are minted, the time, the `parley` object, the wording of
 * errors, and how text is cut into pieces.
 */

/** Brings a whole answer, or an error, into its normal form. `upstream` is what the provider sent. */
export function normalWhole(body: Json, upstream: string): unknown {
  return replaceMinted(stripped(body), upstream);
}

/** Brings a stream into its normal form: its events, with neighbours that only continue each other joined. */
export function normalStream(text: string, upstream: string): unknown {
  const events: Json[] = [];
  for (const block of text.split("\n\n")) {
    if (block === "" || block.startsWith(":")) continue;
    const data = block.replace(/^data: /, "");
    const event = data === "[DONE]" ? { done: true } : stripped(JSON.parse(data) as Json);
    const joined = join(events.at(-1), event);
    if (joined === undefined) events.push(event);
    else events[events.length - 1] = joined;
  }
  return replaceMinted(events, upstream);
}

function stripped(whole: Json): Json {
  const { parley: _, ...body } = whole;
  if ("error" in body) {
    const { message, attempts: __, ...error } = body["error"] as Json;
    return { error: { ...error, message: typeof message } };
  }
  if (!("id" in body)) return body;
  return { ...body, id: /^chatcmpl-\w+$/.test(String(body["id"])), created: typeof body["created"] };
}

/** Tool calls whose IDs the provider did not send are numbered. */
function replaceMinted(value: unknown, upstream: string): unknown {
  const minted = new Map<string, string>();
  return JSON.parse(
    JSON.stringify(value, (key, inner: unknown) => {
      if (key !== "id" || typeof inner !== "string" || !inner.startsWith("call_") || upstream.includes(`"${inner}"`))
        return inner;
      if (!minted.has(inner)) minted.set(inner, `call_${minted.size}`);
      return minted.get(inner);
    }),
  );
}

interface Chunk {
  readonly choices?: readonly { readonly delta: Delta; readonly finish_reason: string | null }[];
}

interface Delta {
  readonly content?: string;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly { readonly index: number; readonly id?: string; readonly function: Json }[];
}

/** Both events as one, when the second only adds to the text of the first. */
function join(first: Json | undefined, second: Json): Json | undefined {
  const [before] = (first as Chunk | undefined)?.choices ?? [];
  const [after] = (second as Chunk).choices ?? [];
  if (before === undefined || after === undefined || after.finish_reason !== null) return undefined;
  const delta = joinDeltas(before.delta, after.delta);
  return delta && { ...second, choices: [{ ...before, delta }] };
}

function joinDeltas(before: Delta, after: Delta): Delta | undefined {
  if ("role" in before) return undefined;
  for (const field of ["content", "reasoning_content"] as const) {
    if (before[field] !== undefined && after[field] !== undefined) return { [field]: before[field] + after[field] };
  }
  const [call] = before.tool_calls ?? [];
  const [more] = after.tool_calls ?? [];
  if (call === undefined || more === undefined || more.id !== undefined || more.index !== call.index) return undefined;
  const text = String(call.function["arguments"]) + String(more.function["arguments"]);
  return { tool_calls: [{ ...call, function: { ...call.function, arguments: text } }] };
}
