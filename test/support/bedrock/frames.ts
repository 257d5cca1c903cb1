import { crc32 } from "node:zlib";

/*
 * AWS's event stream from the provider's side, written from its specification (smithy.io/2.0/aws/amazon-eventstream.html) and not
 * with the codec that reads it.
 */

/** A message with these headers, all of them strings. */
export function frame(headers: Readonly<Record<string, string>>, payload: string | Buffer): Buffer {
  const head = Buffer.concat(Object.entries(headers).map(([name, value]) => header(name, value)));
  const body = Buffer.from(payload);
  const prelude = Buffer.alloc(12);
  prelude.writeUInt32BE(12 + head.length + body.length + 4, 0);
  prelude.writeUInt32BE(head.length, 4);
  prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8);
  const message = Buffer.concat([prelude, head, body]);
  const end = Buffer.alloc(4);
  end.writeUInt32BE(crc32(message));
  return Buffer.concat([message, end]);
}

/** An event of this type. */
export function eventFrame(type: string, data: object): Buffer {
  const headers = { ":event-type": type, ":content-type": "application/json", ":message-type": "event" };
  return frame(headers, JSON.stringify(data));
}

/** An exception in the stream, such as `throttlingException`. */
export function exceptionFrame(type: string, message: string): Buffer {
  const headers = { ":exception-type": type, ":content-type": "application/json", ":message-type": "exception" };
  return frame(headers, JSON.stringify({ message }));
}

/** An event of a Messages stream as InvokeModelWithResponseStream wraps it. */
export function chunkFrame(event: object): Buffer {
  return eventFrame("chunk", { bytes: Buffer.from(JSON.stringify(event)).toString("base64"), p: "abcdefghijkl" });
}

function header(name: string, value: string): Buffer {
  const bytes = Buffer.from(value);
  const lengths = Buffer.from([7, bytes.length >> 8, bytes.length & 0xff]);
  return Buffer.concat([Buffer.from([name.length]), Buffer.from(name), lengths, bytes]);
}
