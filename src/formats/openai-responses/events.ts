import type { NativeBlock } from "../../../gen/parley/v1/message_pb.js";
import { readTyped } from "../native.ts";
import { DIALECT } from "./native.ts";

/** Writes the events of one stream, and numbers them. */
export class EventWriter {
  #sequence = 0;

  /** An event as text. `fields`: further fields as JSON text without braces, each with a comma before it. */
  write(type: string, fields: string): string {
    return `event: ${type}\ndata: {"type":"${type}"${fields},"sequence_number":${this.#sequence++}}\n\n`;
  }

  /** A native event of this dialect in the provider's JSON; empty for another dialect. `place`: as `fields` of `write`. */
  writeOwn(block: NativeBlock, place: string): string {
    const words = readTyped(block, DIALECT);
    if (words === undefined) return "";
    const { type, ...fields } = words;
    const more = JSON.stringify(fields).slice(1, -1);
    return this.write(type, more === "" ? place : `${place},${more}`);
  }
}
