import { damage } from "./damage.ts";
import { mutateJson } from "./json-mutations.ts";
import { parseTree, writeTree } from "./json-tree.ts";
import type { Random } from "./random.ts";
import type { DialectName, SampleStream } from "./sse-streams.ts";

/** One stream, and the positions where the network splits it. */
export interface SseInput {
  readonly dialect: DialectName;
  readonly bytes: Buffer;
  /** Its bytes as they arrive; some pieces are empty. */
  readonly pieces: readonly Buffer[];
  /** The stream with the same meaning; undefined when it is damaged. */
  readonly same: SampleStream | undefined;
}

/** Draws one of the streams, written differently or damaged, and split at random. */
export function sseInput(streams: readonly SampleStream[], random: Random): SseInput {
  const stream = random.pick(streams);
  const isWhole = random.percent(50);
  const text = isWhole ? stream.text : breakEvents(stream.text, random);
  const written = Buffer.from(rewrite(text, random));
  const bytes = isWhole || random.percent(50) ? written : damage(written, random);
  return { dialect: stream.dialect, bytes, pieces: split(bytes, random), same: isWhole ? stream : undefined };
}

/** Encodes the same events differently, as the standard permits. */
function rewrite(text: string, random: Random): string {
  let out = text;
  if (random.percent(20)) out = out.replaceAll("\n\n", `\n\n: ${random.pick(["ping", "日本", ""])}\n\n`);
  if (random.percent(20))
    out = out.replaceAll(/^data: ?/gm, random.pick(["data:", "id: 7\ndata: ", "retry: 1\ndata:"]));
  if (random.percent(10)) out = out.replaceAll(/^(data: ?)\{/gm, "$1{\ndata:");
  if (random.percent(10)) out = out.replace(/\n+$/, "");
  if (random.percent(20)) out = `\uFEFF${out}`;
  const end = random.pick(["\n", "\r\n", "\r", "mixed"]);
  if (end === "\n") return out;
  return out.replaceAll("\n", () => (end === "mixed" ? random.pick(["\n", "\r\n"]) : end));
}

/** The stream with events removed, repeated, exchanged, truncated, or with unusual values in their JSON. */
function breakEvents(text: string, random: Random): string {
  const events = text.split("\n\n").filter((event) => event !== "");
  const at = random.below(events.length);
  switch (random.below(6)) {
    case 0:
      events.splice(at, 1 + random.below(3));
      break;
    case 1:
      events.splice(at, 0, events[random.below(events.length)]!);
      break;
    case 2:
      events.reverse();
      break;
    case 3:
      // The connection ends within an event or between two.
      return text.slice(0, random.below(text.length + 1));
    case 4:
      events[at] = events[at]!.replace(/^data: ?(.+)$/m, (line, json: string) => {
        const tree = parseTree(json);
        return tree === undefined ? line : `data: ${writeTree(mutateJson(tree, random))}`;
      });
      break;
    default:
  }
  return `${events.join("\n\n")}\n\n`;
}

function split(bytes: Buffer, random: Random): Buffer[] {
  const every = random.percent(10) ? 1 + random.below(7) : undefined;
  const cuts =
    every === undefined
      ? Array.from({ length: random.below(12) }, () => random.below(bytes.length + 1)).toSorted((a, b) => a - b)
      : Array.from({ length: Math.floor(bytes.length / every) }, (_, index) => (index + 1) * every);
  const bounds = [0, ...cuts, bytes.length];
  return bounds.slice(1).map((end, index) => bytes.subarray(bounds[index], end));
}
