import { connect, type Socket } from "node:net";
import { AnswerReader, type ReadAnswer } from "./answer-reader.ts";
import { type Assignment, type Caller, count, type Tally } from "./caller.ts";
import { repeatsOf } from "./formats.ts";
import { requestsOf } from "./http-requests.ts";

/** Shared read buffer: its bytes are processed before the next read. */
const READ_BYTES = 64 * 1024;

/** Events of each call. */
export interface Watcher {
  /** Its first content has arrived. */
  readonly onFirstMark?: () => void;
  /** The answer is complete. */
  readonly onEnd?: () => void;
}

/** One keep-alive connection with one call at a time, from precomputed bytes. */
export function createHttpCaller(
  assignment: Assignment,
  tally: () => Tally,
  { onFirstMark, onEnd }: Watcher = {},
): Caller {
  const { load, target } = assignment;
  const requests = requestsOf(assignment);
  const repeats = repeatsOf(load, target.format);
  const problemOf = ({ status, marks, tail, bytes }: ReadAnswer): string | undefined => {
    if (status !== 200) return `status ${status}`;
    const expected = load.marks * repeats;
    if (marks !== expected) return `${marks} marks instead of ${expected}`;
    if (bytes < (load.leastBytes ?? 0)) return `${bytes} bytes instead of at least ${load.leastBytes}`;
    if (load.streamed && !tail.trimEnd().endsWith(target.lastWords)) return `an end of ${JSON.stringify(tail)}`;
    return undefined;
  };

  let socket: Socket | undefined;
  let reader = new AnswerReader();
  let hasMark = false;
  let more: () => boolean = () => false;
  let finish: (() => void) | undefined;

  const next = (): void => {
    if (more()) send();
    else end();
  };
  const end = (): void => {
    const done = finish;
    finish = undefined;
    done?.();
  };
  const lose = (problem: string): void => {
    socket?.destroy();
    socket = undefined;
    reader = new AnswerReader();
    if (finish === undefined) return;
    count(tally(), 0, problem);
    end();
  };
  const take = (bytes: Buffer): void => {
    try {
      const answer = reader.push(bytes);
      if (!hasMark && (answer?.marks ?? reader.marks) > 0) {
        hasMark = true;
        onFirstMark?.();
      }
      if (answer === undefined) return;
      onEnd?.();
      count(tally(), answer.marks / repeats, problemOf(answer));
      next();
    } catch (error) {
      lose(String(error));
    }
  };
  const open = (): Socket => {
    const opened = connect({
      port: target.port,
      host: "127.0.0.1",
      noDelay: true,
      onread: {
        buffer: Buffer.allocUnsafeSlow(READ_BYTES),
        callback: (length, buffer) => {
          take((buffer as Buffer).subarray(0, length));
          return true;
        },
      },
    });
    // A connection that idles out between two slices is replaced by the next call.
    const lost = (problem: string): void => {
      // A replaced connection's call has been counted already.
      if (socket === opened) lose(problem);
    };
    opened.on("error", (error) => lost(error.message)).on("close", () => lost("the connection was closed"));
    return opened;
  };
  const send = (): void => {
    socket ??= open();
    hasMark = false;
    socket.write(requests.next());
  };

  return {
    run: (wanted) =>
      new Promise((resolve) => {
        more = wanted;
        finish = resolve;
        next();
      }),
  };
}
