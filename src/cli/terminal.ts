import type { Output } from "./command.ts";

/** Control and bidirectional formatting characters, except tabs and ends of lines. */
const CONTROLLING = /[^\P{Cc}\t\n]|\p{Bidi_Control}/gu;

/**
 * An output whose text cannot control a terminal: providers, and accounts that may change the stored configuration, choose parts of it.
 * What goes to a file or a pipe stays as it is.
 */
export function forTerminal(stream: Output & { readonly isTTY?: boolean }): Output {
  if (stream.isTTY !== true) return stream;
  return { write: (text) => stream.write(text.replaceAll(CONTROLLING, "\u{fffd}")) };
}
