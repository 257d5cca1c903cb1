/** A server-sent event with a name. */
export interface NamedEvent {
  readonly name: string;
  readonly data: string;
}

/** Reads a stream of named events. Throws for what is neither one nor a comment. */
export function readEvents(body: string): NamedEvent[] {
  return body.split("\n\n").flatMap((text) => {
    if (text === "" || text.startsWith(":")) return [];
    const [, name, data] = /^event: (\S+)\ndata: (.*)$/.exec(text) ?? [];
    if (name === undefined || data === undefined) throw new Error(`not an event with a name: ${text}`);
    return [{ name, data }];
  });
}
