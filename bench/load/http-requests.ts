import type { Assignment } from "./caller.ts";
import { toHttpRequest } from "./formats.ts";

/** The bytes of the next request. */
export interface HttpRequests {
  next(): Buffer;
}

const prepared = new WeakMap<Assignment, HttpRequests>();

/** Precomputed requests of an assignment, one for each key, used in turn by all connections. */
export function requestsOf(assignment: Assignment): HttpRequests {
  let requests = prepared.get(assignment);
  if (requests === undefined) prepared.set(assignment, (requests = prepare(assignment)));
  return requests;
}

function prepare({ load, target: { port, key, keys = [key], headers = {}, format } }: Assignment): HttpRequests {
  const { path, body } = toHttpRequest(load, format);
  const more = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const all = keys.map((each) =>
    Buffer.from(
      `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nauthorization: Bearer ${each}\r\n` +
        `content-type: application/json\r\naccept: */*\r\n${more.join("")}` +
        `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    ),
  );
  let used = 0;
  return { next: () => all[used++ % all.length]! };
}
